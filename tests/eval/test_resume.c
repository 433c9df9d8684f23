/*
 * Recordings with a journal: stopped after some windows and gone on with, the file and the table
 * have the bits of a recording that was not stopped, whatever became of file and journal between.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "eval/reference/compact_writer.h"
#include "eval/reference/logits_writer.h"
#include "eval/units/windows.h"
#include "evaluation.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/temp.h"

#define F16 ASSAY_SOURCE_DIR "/data/tiny.F16.gguf"
#define Q4  ASSAY_SOURCE_DIR "/data/tiny.Q4_K_M.gguf"
enum { N_CTX = 32, N_WINDOWS = 6, N_STOPPED = 4 };
static const char model_id[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

enum kind { LOGITS, COMPACT_F32, COMPACT_F16, N_KINDS };

static char folder[64], path[128], part[128], journal_path[128];
static unsigned char *whole[N_KINDS]; /* the files of undisturbed recordings */
static size_t n_whole[N_KINDS];
static struct eval_table table; /* of one */

/** A recording at work. */
struct recording {
    enum kind kind;
    struct eval_writer *writer;
    struct eval_row_sink sink;
};

static void begin_recording(struct recording *r, enum kind kind, const struct evaluation *e,
                            bool resume)
{
    struct status_why why = {""};
    enum status status;
    *r = (struct recording){.kind = kind};
    if (kind == LOGITS) {
        struct eval_logits_recording options = {.path = path,
                                                .plan = &e->plan,
                                                .stream = &e->stream,
                                                .n_vocab = model_head(e->model)->n_rows,
                                                .force = true,
                                                .resume = resume,
                                                .journal = true};
        status = eval_logits_writer_open(&r->writer, &options, &why);
    } else {
        struct eval_compact_recording options = {.path = path,
                                                 .model = e->model,
                                                 .model_id = model_id,
                                                 .plan = &e->plan,
                                                 .stream = &e->stream,
                                                 .kind = kind == COMPACT_F32 ? EVAL_COMPACT_F32
                                                                             : EVAL_COMPACT_F16,
                                                 .description = "{}",
                                                 .force = true,
                                                 .resume = resume};
        status = eval_compact_writer_open(&r->writer, &options, &why);
    }
    if (status != STATUS_OK)
        fail_msg("%s", why.text);
    r->sink = eval_writer_sink(r->writer);
}

static void end_recording(struct recording *r, bool commit)
{
    struct status_why why = {""};
    if (commit)
        assert_int_equal(eval_writer_commit(r->writer, &why), STATUS_OK);
    else
        eval_writer_close(r->writer, true);
}

struct stop {
    atomic_bool cancel;
    size_t n_windows, after; /* 0: never */
};

static void on_window(void *user, size_t w)
{
    struct stop *stop = user;
    assert_int_equal(w, stop->n_windows++);
    if (stop->n_windows == stop->after)
        atomic_store(&stop->cancel, true);
}

/**
 * Record the windows of a model until `stop_after` of them are done (0: all of them, and commit).
 * Returns the windows that the journal and the part had.
 */
static size_t record(enum kind kind, const char *model, size_t stop_after, bool resume)
{
    struct status_why why = {""};
    struct stop stop = {.after = stop_after};
    struct setup setup = {.model = model,
                          .text = ASSAY_SOURCE_DIR "/data/text.txt",
                          .plan = {.n_ctx = N_CTX, .max_windows = N_WINDOWS},
                          .cpu = {.isa_cap = KERN_ISA_COUNT - 1, .n_threads = 1},
                          .cancel = &stop.cancel};
    struct evaluation e;
    evaluation_open(&e, &setup);
    struct recording r;
    begin_recording(&r, kind, &e, resume);
    struct eval_journal *journal;
    assert_int_equal(eval_journal_open(&journal, journal_path, model, &why), STATUS_OK);
    setup.sink = &r.sink;
    setup.batch_tokens = N_CTX;
    setup.run =
        (struct eval_run_options){.unit_done = on_window, .user = &stop, .journal = journal};
    enum status status = evaluation_run(&e, &setup, &why);
    assert_int_equal(status, stop_after ? STATUS_CANCELLED : STATUS_OK);
    assert_int_equal(stop.n_windows, stop_after ? stop_after : N_WINDOWS);
    assert_int_equal(e.stats.n_units + e.stats.n_resumed, stop.n_windows);
    size_t n_resumed = e.stats.n_resumed;
    eval_journal_close(journal);
    end_recording(&r, !stop_after);
    if (!stop_after) {
        if (table.cells)
            assert_memory_equal(e.table.cells, table.cells,
                                EVAL_N_COLUMNS * table.n_windows * table.n_scored * sizeof(double));
        else {
            table = e.table;
            e.table = (struct eval_table){0};
        }
    }
    evaluation_close(&e);
    return n_resumed;
}

static unsigned char *read_file(const char *name, size_t *n_bytes)
{
    struct stat about;
    assert_int_equal(stat(name, &about), 0);
    *n_bytes = (size_t)about.st_size;
    unsigned char *bytes = malloc(*n_bytes);
    FILE *f = fopen(name, "rb");
    assert_non_null(f);
    assert_int_equal(fread(bytes, 1, *n_bytes, f), *n_bytes);
    fclose(f);
    return bytes;
}

/** Go on, which must find so many windows done, and compare the file. */
static void assert_goes_on(enum kind kind, size_t n_resumed)
{
    assert_int_equal(record(kind, F16, 0, true), n_resumed);
    size_t n_bytes;
    unsigned char *bytes = read_file(path, &n_bytes);
    assert_int_equal(n_bytes, n_whole[kind]);
    assert_memory_equal(bytes, whole[kind], n_bytes);
    free(bytes);
    assert_int_equal(access(part, F_OK), -1);
    unlink(path);
    unlink(journal_path);
}

static int record_undisturbed(void **state)
{
    (void)state;
    temp_make(folder);
    temp_path(path, folder, "base");
    temp_path(part, folder, "base.part");
    temp_path(journal_path, folder, "state.journal");
    for (enum kind kind = 0; kind < N_KINDS; kind++) {
        record(kind, F16, 0, false);
        whole[kind] = read_file(path, &n_whole[kind]);
        unlink(path);
        unlink(journal_path);
    }
    return 0;
}

static int clean_up(void **state)
{
    (void)state;
    for (enum kind kind = 0; kind < N_KINDS; kind++)
        free(whole[kind]);
    eval_table_free(&table);
    return rmdir(folder); /* fails where something was left behind */
}

static void goes_on_where_it_stopped(void **state)
{
    (void)state;
    for (enum kind kind = 0; kind < N_KINDS; kind++) {
        record(kind, F16, N_STOPPED, false);
        assert_int_equal(record(kind, F16, N_STOPPED + 1, true), N_STOPPED);
        assert_goes_on(kind, N_STOPPED + 1);
    }
}

/** The journal says that windows are done, the recording is gone. */
static void begins_anew_without_the_part(void **state)
{
    (void)state;
    for (enum kind kind = 0; kind < N_KINDS; kind++) {
        record(kind, F16, N_STOPPED, false);
        assert_int_equal(unlink(part), 0);
        assert_goes_on(kind, 0);
    }
}

static void begins_anew_without_the_journal(void **state)
{
    (void)state;
    for (enum kind kind = 0; kind < N_KINDS; kind++) {
        record(kind, F16, N_STOPPED, false);
        assert_int_equal(unlink(journal_path), 0);
        assert_goes_on(kind, 0);
    }
}

/** Rows that the journal vouches for are looked at: here the last row of the last window. */
static void damaged_rows_are_recorded_again(void **state)
{
    (void)state;
    for (enum kind kind = 0; kind < N_KINDS; kind++) {
        record(kind, F16, N_STOPPED, false);
        size_t n_bytes;
        unsigned char *bytes = read_file(part, &n_bytes);
        bytes[n_bytes - 9] ^= 1;
        temp_write(part, bytes, n_bytes);
        free(bytes);
        assert_goes_on(kind, N_STOPPED - 1);
    }
}

static void cut_off_rows_are_recorded_again(void **state)
{
    (void)state;
    for (enum kind kind = 0; kind < N_KINDS; kind++) {
        record(kind, F16, N_STOPPED, false);
        struct stat about;
        assert_int_equal(stat(part, &about), 0);
        assert_int_equal(truncate(part, about.st_size - 1), 0);
        assert_goes_on(kind, N_STOPPED - 1);
    }
}

/** A base-logits file does not say which model it is of; the sums do. */
static void rows_of_another_model_are_recorded_again(void **state)
{
    (void)state;
    record(LOGITS, F16, N_STOPPED, false);
    char kept[128];
    temp_path(kept, folder, "kept");
    assert_int_equal(rename(journal_path, kept), 0);
    record(LOGITS, Q4, N_STOPPED, false);
    assert_int_equal(rename(kept, journal_path), 0);
    assert_goes_on(LOGITS, 0);
}

/** Killed while the head was written: no record can be there. */
static void part_of_a_head_is_no_obstacle(void **state)
{
    (void)state;
    for (enum kind kind = 0; kind < N_KINDS; kind++)
        for (size_t n = 0; n < 700; n += 100) {
            temp_write(part, whole[kind], n);
            assert_goes_on(kind, 0);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goes_on_where_it_stopped),
        cmocka_unit_test(begins_anew_without_the_part),
        cmocka_unit_test(begins_anew_without_the_journal),
        cmocka_unit_test(damaged_rows_are_recorded_again),
        cmocka_unit_test(cut_off_rows_are_recorded_again),
        cmocka_unit_test(rows_of_another_model_are_recorded_again),
        cmocka_unit_test(part_of_a_head_is_no_obstacle),
    };
    return cmocka_run_group_tests(tests, record_undisturbed, clean_up);
}
