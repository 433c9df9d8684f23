/*
 * Journals: what was appended is read again, however the file was cut off or damaged since, up to
 * the first record that is not whole; and a journal of anything else is refused by name.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "eval/run/difference.h"
#include "eval/run/journal.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/temp.h"

static const char settings[] = "{\"n_ctx\": 512, \"model\": {\"id\": \"abc\"}, \"files\": [1, 2]}";

enum {
    N_RECORDS = 5,
    HEAD = 16 + sizeof settings - 1 + 64, /* bytes */
    CHECKSUM = 64
};

static char folder[64], path[128];
static unsigned char *whole; /* a journal of N_RECORDS */
static size_t n_whole;

/** Record i has i + 1 numbers; one of them is no number. */
static void fill(double *values, size_t i)
{
    for (size_t k = 0; k <= i; k++)
        values[k] = k == 3 ? strtod("nan", NULL) : (double)i + 0.25 * (double)k;
}

static size_t record_bytes(size_t i)
{
    return 16 + (i + 1) * sizeof(double) + CHECKSUM;
}

/** Bytes of a journal of n records. */
static size_t journal_bytes(size_t n)
{
    size_t n_bytes = HEAD;
    for (size_t i = 0; i < n; i++)
        n_bytes += record_bytes(i);
    return n_bytes;
}

static struct eval_journal *open_journal(void)
{
    struct eval_journal *j;
    struct status_why why = {""};
    if (eval_journal_open(&j, path, settings, &why) != STATUS_OK)
        fail_msg("%s", why.text);
    return j;
}

/** Read all whole records and compare them with what was written. Returns their number. */
static size_t read_all(struct eval_journal *j)
{
    struct status_why why = {""};
    bool found = true;
    size_t n = 0;
    for (; n < N_RECORDS; n++) {
        double values[N_RECORDS], expected[N_RECORDS];
        fill(expected, n);
        assert_int_equal(eval_journal_read(j, values, n + 1, &found, &why), STATUS_OK);
        if (!found)
            break;
        assert_memory_equal(values, expected, (n + 1) * sizeof(double));
    }
    assert_int_equal(eval_journal_n(j), n);
    return n;
}

static void append_from(struct eval_journal *j, size_t n)
{
    struct status_why why = {""};
    for (; n < N_RECORDS; n++) {
        double values[N_RECORDS];
        fill(values, n);
        assert_int_equal(eval_journal_append(j, values, n + 1, &why), STATUS_OK);
    }
    assert_int_equal(eval_journal_sync(j, &why), STATUS_OK);
}

static int make_journal(void **state)
{
    (void)state;
    temp_make(folder);
    temp_path(path, folder, "state.journal");
    struct eval_journal *j = open_journal();
    append_from(j, 0);
    eval_journal_close(j);
    n_whole = journal_bytes(N_RECORDS);
    whole = (unsigned char *)temp_read(path);
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_size, n_whole);
    return 0;
}

static int remove_journal(void **state)
{
    (void)state;
    free(whole);
    unlink(path);
    return rmdir(folder);
}

static void assert_whole_again(void)
{
    unsigned char *now = (unsigned char *)temp_read(path);
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_size, n_whole);
    assert_memory_equal(now, whole, n_whole);
    free(now);
}

/** Open, which must be refused with this status and a sentence that has the fragment. */
static void assert_refused(const char *with, enum status expected, const char *fragment)
{
    struct eval_journal *j;
    struct status_why why = {""};
    assert_int_equal(eval_journal_open(&j, path, with, &why), expected);
    assert_null(j);
    if (!strstr(why.text, fragment) || !strstr(why.text, "state.journal"))
        fail_msg("'%s' in '%s'", fragment, why.text);
}

/** Write the records from n on and compare the file; not for every i, because disks are slow. */
static void go_on_now_and_then(struct eval_journal *j, size_t n, size_t i)
{
    bool now = i % 17 == 0;
    if (now)
        append_from(j, n);
    eval_journal_close(j);
    if (now)
        assert_whole_again();
}

/** Cut off anywhere, the whole records are read and the rest can be written again. */
static void truncated_at_each_byte(void **state)
{
    (void)state;
    for (size_t n_bytes = 0; n_bytes <= n_whole; n_bytes++) {
        temp_write(path, whole, n_bytes);
        struct eval_journal *j = open_journal();
        size_t n = read_all(j), expected = 0;
        while (expected < N_RECORDS && journal_bytes(expected + 1) <= n_bytes)
            expected++;
        assert_int_equal(n, expected);
        size_t n_read = journal_bytes(n);
        assert_int_equal(eval_journal_n_behind(j), n_bytes > n_read ? n_bytes - n_read : 0);
        go_on_now_and_then(j, n, n_bytes);
    }
}

/** Any flipped bit ends the reading before its record, or is refused where it is in the head. */
static void damaged_at_each_byte(void **state)
{
    (void)state;
    for (size_t at = 0; at < n_whole; at++) {
        whole[at] ^= (unsigned char)(1 << at % 8);
        temp_write(path, whole, n_whole);
        whole[at] ^= (unsigned char)(1 << at % 8);
        struct eval_journal *j;
        struct status_why why = {""};
        enum status status = eval_journal_open(&j, path, settings, &why);
        if (at < HEAD) {
            assert_int_not_equal(status, STATUS_OK);
            assert_non_null(strstr(why.text, path));
            continue;
        }
        assert_int_equal(status, STATUS_OK);
        size_t n = read_all(j);
        assert_true(journal_bytes(n) <= at && at < journal_bytes(n + 1));
        go_on_now_and_then(j, n, at);
    }
}

/** Records are bound to their place: neither left out nor exchanged nor taken from elsewhere. */
static void records_cannot_be_moved(void **state)
{
    (void)state;
    unsigned char *bytes = malloc(n_whole);
    memcpy(bytes, whole, n_whole);
    size_t first = journal_bytes(1), second = journal_bytes(2);
    memmove(bytes + first, bytes + second, n_whole - second);
    temp_write(path, bytes, n_whole - (second - first));
    free(bytes);
    struct eval_journal *j = open_journal();
    assert_int_equal(read_all(j), 1);
    eval_journal_close(j);
}

static void patch_head(size_t at, uint32_t value)
{
    unsigned char *bytes = malloc(n_whole);
    memcpy(bytes, whole, n_whole);
    memcpy(bytes + at, &value, sizeof value);
    temp_write(path, bytes, n_whole);
    free(bytes);
}

static void refuses_what_is_no_journal(void **state)
{
    (void)state;
    temp_write(path, "GGUF and more", 13);
    assert_refused(settings, STATUS_FORMAT, "is not a journal");
    temp_write(path, "x", 1);
    assert_refused(settings, STATUS_FORMAT, "is not a journal");
    patch_head(8, 2);
    assert_refused(settings, STATUS_UNSUPPORTED, "version 2, expected 1");
    patch_head(8, UINT32_MAX);
    assert_refused(settings, STATUS_UNSUPPORTED, "version 4294967295");
    patch_head(12, UINT32_MAX);
    assert_refused(settings, STATUS_FORMAT, "head is damaged");
    patch_head(12, 0);
    assert_refused(settings, STATUS_FORMAT, "head is damaged");
    patch_head(12, (uint32_t)(n_whole - 16));
    assert_refused(settings, STATUS_FORMAT, "head is damaged");
    patch_head(12, 1 << 20);
    assert_refused(settings, STATUS_FORMAT, "head is damaged");
}

static void names_the_setting_that_differs(void **state)
{
    (void)state;
    temp_write(path, whole, n_whole);
    static const struct {
        const char *now, *fragment;
    } cases[] = {
        {"{\"n_ctx\": 256, \"model\": {\"id\": \"abc\"}, \"files\": [1, 2]}",
         "was made with n_ctx 512, this run has 256;"},
        {"{\"n_ctx\": 512, \"model\": {\"id\": \"xyz\"}, \"files\": [1, 2]}",
         "with model.id abc, this run has xyz;"},
        {"{\"n_ctx\": 512, \"model\": {}, \"files\": [1, 2]}", "model.id abc, this run has none;"},
        {"{\"n_ctx\": 512, \"model\": {\"id\": \"abc\", \"x\": null}, \"files\": [1, 2]}",
         "model.x none, this run has null;"},
        {"{\"n_ctx\": 512, \"model\": {\"id\": \"abc\"}, \"files\": [1, 3]}",
         "files[1] 2, this run has 3;"},
        {"{\"n_ctx\": 512, \"model\": {\"id\": \"abc\"}, \"files\": [1, 2, 3]}",
         "files[2] none, this run has 3;"},
        {"{\"n_ctx\": 512, \"model\": 7, \"files\": [1, 2]}",
         "model something else, this run has 7;"},
        {"{\"n_ctx\": 512, \"model\": {\"id\": \"abc\"}, \"files\": [1, 2] }", "other settings"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_refused(cases[i].now, STATUS_USAGE, cases[i].fragment);
    assert_whole_again();
}

static void shows_no_control_characters(void **state)
{
    (void)state;
    struct eval_difference d;
    struct status_why why = {""};
    assert_int_equal(eval_difference_find(&d, "{\"a\\u001b\": \"\\u001b[31m\\u00e9\"}", "{}", &why),
                     STATUS_OK);
    assert_string_equal(d.name, "a?");
    assert_string_equal(d.first, "?[31m??");
    assert_int_equal(eval_difference_find(&d, "{", "{}", &why), STATUS_FORMAT);
    assert_int_equal(eval_difference_find(&d, "{\"a\": [1]}", "{\"a\": [1.0]}", &why), STATUS_OK);
    assert_string_equal(d.name, "");
}

static void two_runs_do_not_share_one(void **state)
{
    (void)state;
    temp_write(path, whole, n_whole);
    struct eval_journal *j = open_journal();
    assert_refused(settings, STATUS_IO, "in use by another run");
    eval_journal_close(j);
    j = open_journal();
    eval_journal_close(j);
}

static void refuses_what_cannot_be_one(void **state)
{
    (void)state;
    struct eval_journal *j;
    struct status_why why = {""};
    assert_int_equal(eval_journal_open(&j, "/dev/full", settings, &why), STATUS_IO);
    assert_non_null(strstr(why.text, "/dev/full: is not a regular file"));
    assert_int_equal(eval_journal_open(&j, folder, settings, &why), STATUS_IO);
    assert_int_equal(eval_journal_open(&j, "/no-such-folder/j", settings, &why), STATUS_IO);
    assert_non_null(strstr(why.text, "/no-such-folder/j: "));
    char pipe[128];
    temp_path(pipe, folder, "pipe");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_int_equal(eval_journal_open(&j, pipe, settings, &why), STATUS_IO);
    unlink(pipe);
}

/** What a full disk leaves behind is cut off like anything else. */
static void full_disk(void **state)
{
    (void)state;
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    unlink(path);
    struct eval_journal *j = open_journal();
    signal(SIGXFSZ, SIG_IGN);
    small = (struct rlimit){journal_bytes(2) + 20, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    double values[N_RECORDS];
    struct status_why why = {""};
    size_t n = 0;
    enum status status = STATUS_OK;
    for (; n < N_RECORDS && status == STATUS_OK; n++) {
        fill(values, n);
        status = eval_journal_append(j, values, n + 1, &why);
    }
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    eval_journal_close(j);
    assert_int_equal(status, STATUS_IO);
    assert_int_equal(n, 3);
    assert_non_null(strstr(why.text, "state.journal: writing failed: "));
    j = open_journal();
    assert_int_equal(read_all(j), 2);
    assert_int_equal(eval_journal_n_behind(j), 20);
    append_from(j, 2);
    eval_journal_close(j);
    assert_whole_again();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(truncated_at_each_byte),
        cmocka_unit_test(damaged_at_each_byte),
        cmocka_unit_test(records_cannot_be_moved),
        cmocka_unit_test(refuses_what_is_no_journal),
        cmocka_unit_test(names_the_setting_that_differs),
        cmocka_unit_test(shows_no_control_characters),
        cmocka_unit_test(two_runs_do_not_share_one),
        cmocka_unit_test(refuses_what_cannot_be_one),
        cmocka_unit_test(full_disk),
    };
    return cmocka_run_group_tests(tests, make_journal, remove_journal);
}
