/* base/file/part_file.h: recordings that survive, and take their name when they are whole. */
#include "tests/harness/cmocka.h"
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/content/written.h"
#include "base/file/part_file.h"
#include "tests/harness/temp.h"

static char folder[64], target[128], part_name[136];

static int make_folder(void **state)
{
    (void)state;
    temp_make(folder);
    temp_path(target, folder, "result");
    snprintf(part_name, sizeof part_name, "%s.part", target);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(target);
    unlink(part_name);
    return rmdir(folder); /* fails where something else was left behind */
}

static struct base_part *open_new(uint64_t n_bytes)
{
    struct base_part *part;
    struct status_why why = {""};
    const struct base_part_options options = {.n_bytes = n_bytes};
    enum status status = base_part_open(&part, target, &options, &why);
    assert_string_equal(why.text, "");
    assert_int_equal(status, STATUS_OK);
    return part;
}

static void assert_refused(const struct base_part_options *options, enum status expected,
                           const char *sentence)
{
    struct base_part *part;
    struct status_why why = {""};
    assert_int_equal(base_part_open(&part, target, options, &why), expected);
    assert_null(part);
    assert_non_null(strstr(why.text, sentence));
}

static void assert_content(const char *path, const char *expected)
{
    char *content = temp_read(path);
    assert_string_equal(content, expected);
    free(content);
}

static void test_takes_its_name_at_the_commit(void **state)
{
    (void)state;
    struct status_why why;
    struct base_part *part = open_new(8);
    assert_string_equal(base_part_path(part), part_name);
    assert_int_equal(base_part_write(part, 4, "5678", 4, &why), STATUS_OK);
    assert_int_equal(base_part_write(part, 0, "1234", 4, &why), STATUS_OK);
    assert_int_equal(access(target, F_OK), -1);
    assert_int_equal(base_part_commit(part, &why), STATUS_OK);
    assert_int_equal(access(part_name, F_OK), -1);
    assert_content(target, "12345678");
}

static void test_continues_what_was_kept(void **state)
{
    (void)state;
    struct status_why why;
    struct base_part *part = open_new(100);
    assert_int_equal(base_part_kept(part), 0);
    assert_int_equal(base_part_write(part, 0, "first", 5, &why), STATUS_OK);
    base_part_close(part, true);
    assert_content(part_name, "first"); /* space set aside is not size */

    const struct base_part_options resume = {.n_bytes = 100, .resume = true};
    assert_int_equal(base_part_open(&part, target, &resume, &why), STATUS_OK);
    assert_int_equal(base_part_kept(part), 5);
    char bytes[6] = "";
    assert_int_equal(base_part_read(part, 1, bytes, 4, &why), STATUS_OK);
    assert_string_equal(bytes, "irst");
    assert_int_equal(base_part_read(part, 1, bytes, 5, &why), STATUS_FORMAT);
    assert_non_null(strstr(why.text, "ends at byte 5, expected 1 more"));
    assert_int_equal(base_part_write(part, 5, " second", 7, &why), STATUS_OK);
    assert_int_equal(base_part_commit(part, &why), STATUS_OK);
    assert_content(target, "first second");
}

static void test_begins_anew_unless_told_to_resume(void **state)
{
    (void)state;
    temp_write(part_name, "stale", 5);
    struct base_part *part = open_new(1);
    assert_int_equal(base_part_kept(part), 0);
    struct stat now;
    assert_int_equal(stat(part_name, &now), 0);
    assert_int_equal(now.st_size, 0);
    base_part_close(part, false);
    assert_int_equal(access(part_name, F_OK), -1);
}

static void test_replaces_only_when_allowed(void **state)
{
    (void)state;
    struct status_why why;
    temp_write(target, "old", 3);
    assert_int_equal(chmod(target, 0640), 0);
    const struct base_part_options options = {.n_bytes = 3, .only_new = true},
                                   replace = {.n_bytes = 3};
    assert_refused(&options, STATUS_USAGE, "exists; --force replaces it");
    assert_int_equal(access(part_name, F_OK), -1);

    struct base_part *part;
    assert_int_equal(base_part_open(&part, target, &replace, &why), STATUS_OK);
    assert_int_equal(base_part_write(part, 0, "new", 3, &why), STATUS_OK);
    assert_content(target, "old");
    assert_int_equal(base_part_commit(part, &why), STATUS_OK);
    assert_content(target, "new");
    struct stat now;
    assert_int_equal(stat(target, &now), 0);
    assert_int_equal(now.st_mode & 07777, 0640);
}

/** Killed after the commit: going on finds the whole file, and leaves it alone. */
static void test_goes_on_with_what_is_whole(void **state)
{
    (void)state;
    struct status_why why = {""};
    struct base_part *part;
    char bytes[4];
    temp_write(target, "1234", 4);
    const struct base_part_options resume = {.n_bytes = 4, .only_new = true, .resume = true};
    for (int commit = 0; commit < 2; commit++) {
        assert_int_equal(base_part_open(&part, target, &resume, &why), STATUS_OK);
        assert_true(base_part_is_whole(part));
        assert_int_equal(base_part_kept(part), 4);
        assert_int_equal(base_part_read(part, 0, bytes, 4, &why), STATUS_OK);
        assert_memory_equal(bytes, "1234", 4);
        assert_int_equal(base_part_write(part, 0, "x", 1, &why), STATUS_USAGE);
        assert_non_null(strstr(why.text, "result: exists; --force replaces it"));
        if (commit)
            assert_int_equal(base_part_commit(part, &why), STATUS_OK);
        else
            base_part_close(part, false);
        assert_content(target, "1234");
        assert_int_equal(access(part_name, F_OK), -1);
    }
    temp_write(part_name, "12", 2);
    assert_refused(&resume, STATUS_USAGE, "exists; --force replaces it");
}

static void test_refuses_what_is_no_file(void **state)
{
    (void)state;
    struct base_part *part;
    struct status_why why;
    const struct base_part_options options = {.n_bytes = 3};
    const char *const bad[] = {"/dev/full", "/dev/null", "/tmp", "/nonexistent/x", ""};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(base_part_open(&part, bad[i], &options, &why), STATUS_IO);
        assert_null(part);
    }
}

static void test_only_one_writes(void **state)
{
    (void)state;
    const struct base_part_options options = {.n_bytes = 3};
    struct base_part *part = open_new(3);
    assert_refused(&options, STATUS_IO, "is being written by another process");
    base_part_close(part, false);
    base_part_close(open_new(3), false);
}

static void test_space_is_checked(void **state)
{
    (void)state;
    const struct base_part_options beyond = {.n_bytes = UINT64_MAX};
    assert_refused(&beyond, STATUS_IO, "no room for");
    const struct base_part_options petabytes = {.n_bytes = (uint64_t)1 << 52};
    assert_refused(&petabytes, STATUS_IO, target);
    assert_int_equal(access(part_name, F_OK), -1);
}

static void test_leaves_what_is_not_ours(void **state)
{
    (void)state;
    const struct base_part_options options = {.n_bytes = 9, .kind = BASE_LOGITS};
    temp_write(part_name, "another", 7);
    assert_refused(&options, STATUS_USAGE, "is a text, and is left as it is; move it");
    assert_content(part_name, "another");
    temp_write(target, "another", 7);
    unlink(part_name);
    assert_refused(&options, STATUS_USAGE,
                   "is a text, expected a new file or a base-logits file; give another name, or "
                   "--force to replace it");
    assert_content(target, "another");
    unlink(target);
    temp_write(part_name, BASE_LOGITS_MAGIC, 8);
    assert_int_equal(link(part_name, target), 0);
    const struct base_part_options force = {9, .kind = BASE_LOGITS, .force = true};
    assert_refused(&force, STATUS_USAGE, "is a file that has another name, too");
    assert_content(target, BASE_LOGITS_MAGIC);
    unlink(target);
    struct base_part *part;
    assert_int_equal(base_part_open(&part, target, &options, NULL), STATUS_OK);
    assert_content(part_name, "");
    base_part_close(part, false);
}

static void test_replaces_nothing_that_appeared(void **state)
{
    (void)state;
    struct status_why why;
    struct base_part *part = open_new(3);
    assert_int_equal(base_part_write(part, 0, "new", 3, &why), STATUS_OK);
    temp_write(target, "other", 5);
    assert_int_equal(base_part_commit(part, &why), STATUS_USAGE);
    assert_non_null(strstr(why.text, "was made by something else meanwhile"));
    assert_content(target, "other");
    assert_content(part_name, "new");
}

/* Bytes that others appended go; bytes that others cut off are missed. */
static void test_ends_where_it_should(void **state)
{
    (void)state;
    struct status_why why;
    struct base_part *part = open_new(4);
    assert_int_equal(base_part_write(part, 0, "1234", 4, &why), STATUS_OK);
    assert_int_equal(truncate(part_name, 100), 0);
    assert_int_equal(base_part_commit(part, &why), STATUS_OK);
    assert_content(target, "1234");
    unlink(target);
    for (int write = 0; write < 2; write++) {
        part = open_new(8);
        assert_int_equal(base_part_write(part, 0, "1234", 4, &why), STATUS_OK);
        assert_int_equal(truncate(part_name, 3), 0);
        if (write) {
            assert_int_equal(base_part_write(part, 4, "5678", 4, &why), STATUS_IO);
            base_part_close(part, true);
        } else {
            assert_int_equal(base_part_commit(part, &why), STATUS_IO);
        }
        assert_non_null(strstr(why.text, "has 3 bytes where 4 were written"));
        assert_int_equal(access(target, F_OK), -1);
    }
}

/* The name leads to another file, which is neither renamed nor removed. */
static void test_loses_its_name(void **state)
{
    (void)state;
    struct status_why why;
    for (int commit = 0; commit < 2; commit++) {
        struct base_part *part = open_new(3);
        assert_int_equal(base_part_write(part, 0, "new", 3, &why), STATUS_OK);
        assert_int_equal(unlink(part_name), 0);
        temp_write(part_name, "other", 5);
        if (commit) {
            assert_int_equal(base_part_commit(part, &why), STATUS_IO);
            assert_non_null(strstr(why.text, "was removed or renamed while it was written"));
        } else {
            base_part_close(part, false);
        }
        assert_content(part_name, "other");
        assert_int_equal(access(target, F_OK), -1);
    }
}

/* What a quota does: writes fail from some size on. */
static void test_failed_writes_are_told(void **state)
{
    (void)state;
    struct rlimit before, limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 4096;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    struct base_part *part = open_new(100);
    struct status_why why;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    char bytes[4097] = "";
    enum status whole = base_part_write(part, 0, bytes, 4096, &why);
    enum status more = base_part_write(part, 4096, bytes, 1, &why);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
    assert_int_equal(whole, STATUS_OK);
    assert_int_equal(more, STATUS_IO);
    assert_non_null(strstr(why.text, strerror(EFBIG)));
    assert_non_null(strstr(why.text, part_name));
    base_part_close(part, false);
}

/* A killed process gives up its lock and leaves its bytes. */
static void test_survives_a_kill(void **state)
{
    (void)state;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct status_why why;
        struct base_part *part = open_new(6);
        base_part_write(part, 0, "abc", 3, &why);
        raise(SIGKILL);
    }
    int outcome;
    assert_int_equal(waitpid(child, &outcome, 0), child);
    assert_true(WIFSIGNALED(outcome));
    struct status_why why;
    struct base_part *part;
    const struct base_part_options resume = {.n_bytes = 6, .resume = true};
    assert_int_equal(base_part_open(&part, target, &resume, &why), STATUS_OK);
    assert_int_equal(base_part_kept(part), 3);
    assert_int_equal(base_part_write(part, 3, "def", 3, &why), STATUS_OK);
    assert_int_equal(base_part_commit(part, &why), STATUS_OK);
    assert_content(target, "abcdef");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {TEST(test_takes_its_name_at_the_commit),
                                       TEST(test_continues_what_was_kept),
                                       TEST(test_begins_anew_unless_told_to_resume),
                                       TEST(test_replaces_only_when_allowed),
                                       TEST(test_goes_on_with_what_is_whole),
                                       TEST(test_refuses_what_is_no_file),
                                       TEST(test_only_one_writes),
                                       TEST(test_space_is_checked),
                                       TEST(test_failed_writes_are_told),
                                       TEST(test_leaves_what_is_not_ours),
                                       TEST(test_replaces_nothing_that_appeared),
                                       TEST(test_ends_where_it_should),
                                       TEST(test_loses_its_name),
                                       TEST(test_survives_a_kill)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
