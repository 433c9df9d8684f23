/*
 * Base-logits files: a recording that is read again, whole, truncated and gone on with; bytes
 * that no program wrote; records that no model gives.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/content/kind.h"
#include "eval/identity.h"
#include "eval/reference/logits_source.h"
#include "eval/reference/logits_writer.h"
#include "evaluation.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/temp.h"

#define F16 ASSAY_SOURCE_DIR "/data/tiny.F16.gguf"
#define Q4  ASSAY_SOURCE_DIR "/data/tiny.Q4_K_M.gguf"
enum { N_CTX = 32, N_WINDOWS = 6, N_SCORED = 15, N_ROWS = N_WINDOWS * N_SCORED };

static char folder[64], path[128];
static unsigned char *whole; /* the file's bytes */
static size_t n_whole;
static struct eval_table pair_table; /* of Q4_K_M against the whole file */

static struct setup usual(void)
{
    struct setup setup = setup_usual(F16, N_CTX, N_WINDOWS);
    setup.batch_tokens = 2 * N_CTX;
    return setup;
}

static struct eval_logits_recording recording_of(const struct evaluation *e)
{
    return (struct eval_logits_recording){.path = path,
                                          .plan = &e->plan,
                                          .stream = &e->stream,
                                          .n_vocab = model_head(e->model)->n_rows};
}

static unsigned char *read_bytes(const char *name, size_t *n_bytes)
{
    FILE *f = fopen(name, "rb");
    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    *n_bytes = (size_t)ftell(f);
    rewind(f);
    unsigned char *bytes = malloc(*n_bytes);
    assert_int_equal(fread(bytes, 1, *n_bytes, f), *n_bytes);
    fclose(f);
    return bytes;
}

/** Compare Q4_K_M with a file from its chunk `first` on. The caller closes *e. */
static enum status compare(struct evaluation *e, const struct eval_logits_file *file, size_t first,
                           struct status_why *why)
{
    struct eval_logits_reading reading;
    struct eval_row_source source = eval_logits_source(&reading, file, first, -(double)INFINITY);
    struct setup setup = usual();
    setup.model = Q4;
    setup.base = &source;
    setup.plan.skip_windows = first;
    setup.plan.max_windows = file->n_whole - first;
    evaluation_open(e, &setup);
    return evaluation_run(e, &setup, why);
}

static int record_whole(void **state)
{
    (void)state;
    temp_make(folder);
    temp_path(path, folder, "base.kld");
    struct status_why why;
    struct setup setup = usual();
    struct evaluation e;
    evaluation_open(&e, &setup);
    struct eval_logits_recording recording = recording_of(&e);
    struct eval_writer *writer;
    assert_int_equal(eval_logits_writer_open(&writer, &recording, &why), STATUS_OK);
    struct eval_row_sink sink = eval_writer_sink(writer);
    setup.sink = &sink;
    assert_int_equal(evaluation_run(&e, &setup, &why), STATUS_OK);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(eval_writer_commit(writer, &why), STATUS_OK);
    whole = read_bytes(path, &n_whole);
    evaluation_close(&e);

    struct eval_logits_file file;
    assert_int_equal(eval_logits_open(&file, path, &why), STATUS_OK);
    assert_int_equal(compare(&e, &file, 0, &why), STATUS_OK);
    pair_table = e.candidate_tables[0];
    e.candidate_tables[0] = (struct eval_table){0};
    evaluation_close(&e);
    eval_logits_close(&file);
    return 0;
}

static int remove_whole(void **state)
{
    (void)state;
    unlink(path);
    eval_table_free(&pair_table);
    free(whole);
    return rmdir(folder);
}

/** What the file holds is what kern_record gives, which test_base_rows compares; here the frame. */
static void a_recording_is_read(void **state)
{
    (void)state;
    struct status_why why;
    struct setup setup = usual();
    struct evaluation e;
    evaluation_open(&e, &setup);
    struct eval_logits_file file;
    assert_true(base_file_begins(path, eval_logits_magic));
    assert_false(base_file_begins(F16, eval_logits_magic));
    assert_false(base_file_begins("/nonexistent", eval_logits_magic));
    assert_int_equal(eval_logits_open(&file, path, &why), STATUS_OK);
    assert_int_equal(file.shape.n_ctx, N_CTX);
    assert_int_equal(file.shape.n_vocab, model_head(e.model)->n_rows);
    assert_int_equal(file.shape.n_chunks, N_WINDOWS);
    assert_int_equal(file.n_whole, N_WINDOWS);
    assert_memory_equal(file.ids, e.stream.ids, N_WINDOWS * N_CTX * sizeof(int32_t));
    uint64_t n_record = 2 * kern_record_codes(file.shape.n_vocab);
    assert_int_equal(n_whole, 20 + 4 * N_WINDOWS * N_CTX + N_ROWS * n_record);
    assert_int_equal(eval_logits_file_bytes(&file.shape), n_whole);
    char id[BASE_HEX], again[BASE_HEX];
    assert_int_equal(eval_logits_id(id, &file, &why), STATUS_OK);
    assert_int_equal(strlen(id), 64);
    double reach = EVAL_LOGITS_MAX_CODE * eval_logits_step(&file);
    assert_true(reach > 15.999 && reach < 16.001);
    assert_int_equal(eval_logits_id(again, &file, &why), STATUS_OK);
    assert_string_equal(id, again);
    eval_logits_close(&file);
    evaluation_close(&e);
}

/** The chunks from one on give what they give in the whole comparison, to the bit. */
static void later_chunks_alone(void **state)
{
    (void)state;
    struct status_why why;
    struct eval_logits_file file;
    assert_int_equal(eval_logits_open(&file, path, &why), STATUS_OK);
    enum { FIRST = 4 };
    struct evaluation e;
    assert_int_equal(compare(&e, &file, FIRST, &why), STATUS_OK);
    assert_int_equal(e.plan.n_windows, N_WINDOWS - FIRST);
    for (size_t w = 0; w < e.plan.n_windows; w++)
        for (enum eval_column c = 0; c < EVAL_N_PAIR_COLUMNS; c++)
            assert_memory_equal(eval_table_row(&e.candidate_tables[0], c, w),
                                eval_table_row(&pair_table, c, FIRST + w),
                                N_SCORED * sizeof(double));
    evaluation_close(&e);
    eval_logits_close(&file);
}

static void truncated_files(void **state)
{
    (void)state;
    struct status_why why;
    struct eval_logits_file file;
    assert_int_equal(eval_logits_view(&file, "F", whole, n_whole - 1, &why), STATUS_OK);
    assert_int_equal(file.n_whole, N_WINDOWS - 1);
    assert_int_equal(eval_logits_check_chunks(&file, 0, N_WINDOWS - 1, &why), STATUS_OK);
    assert_int_equal(eval_logits_check_chunks(&file, 0, N_WINDOWS, &why), STATUS_FORMAT);
    assert_non_null(strstr(why.text,
                           "5 of its 6 chunks are whole; --chunks 5 of assay kld and check "
                           "evaluates those"));
    assert_int_equal(eval_logits_check_chunks(&file, 3, 3, &why), STATUS_FORMAT);
    assert_non_null(
        strstr(why.text,
               "; --chunks 2 of assay kld and check evaluates those from the first chosen one on"));
    assert_int_equal(eval_logits_check_chunks(&file, 5, 1, &why), STATUS_FORMAT);
    assert_null(strstr(why.text, "--chunks"));
    assert_int_equal(eval_logits_check_chunks(&file, 6, 1, &why), STATUS_USAGE);
    assert_non_null(strstr(why.text, "has 6 chunks; there is no chunk 6"));
    assert_int_equal(eval_logits_check_chunks(&file, 2, SIZE_MAX, &why), STATUS_USAGE);
    struct evaluation e;
    assert_int_equal(compare(&e, &file, 0, &why), STATUS_OK); /* what is whole */
    assert_memory_equal(eval_table_row(&e.candidate_tables[0], EVAL_KL, 4),
                        eval_table_row(&pair_table, EVAL_KL, 4), N_SCORED * sizeof(double));
    evaluation_close(&e);
}

/** A header and tokens, then n_records bytes of zeros; freed by the caller. */
static void *frame(const int32_t counts[3], size_t n_ids, size_t n_records, size_t *n_bytes)
{
    *n_bytes = 20 + 4 * n_ids + n_records;
    char *bytes = calloc(1, *n_bytes);
    memcpy(bytes, "_logits_", 8);
    memcpy(bytes + 8, counts, 12);
    return bytes;
}

static void hostile_frames(void **state)
{
    (void)state;
    static const struct {
        int32_t counts[3];
        size_t n_ids, n_records;
        const char *says;
    } cases[] = {
        {{2, 8, 1}, 2, 24, "n_ctx is 2; expected at least 3"},
        {{-4, 8, 1}, 4, 24, "n_ctx is -4"},
        {{4, 0, 1}, 4, 24, "n_vocab is 0; expected at least 1"},
        {{4, INT32_MIN, 1}, 4, 24, "n_vocab is -2147483648"},
        {{4, 8, -1}, 4, 24, "n_chunk is -1"},
        {{4, 8, 2},
         7,
         0,
         "ends at byte 48, within the tokens of its 2 chunks of 4, which end at "
         "byte 52: no chunk is whole"},
        {{INT32_MAX, INT32_MAX, INT32_MAX}, 8, 64, "within the tokens of its 2147483647 chunks"},
        {{3, 8, INT32_MAX}, 3, 24, "within the tokens of its 2147483647 chunks"},
        {{4, 8, 1}, 4, 25, "has 61 bytes; expected 60 for 1 chunk of 4 tokens"},
        {{4, 8, 1}, 4, 48, "has 84 bytes; expected 60"},
        {{4, 7, 1}, 4, 26, "has 62 bytes; expected 60"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct status_why why = {""};
        struct eval_logits_file file;
        size_t n_bytes;
        void *bytes = frame(cases[i].counts, cases[i].n_ids, cases[i].n_records, &n_bytes);
        assert_int_equal(eval_logits_view(&file, "F", bytes, n_bytes, &why), STATUS_FORMAT);
        if (!strstr(why.text, cases[i].says))
            fail_msg("case %zu: %s", i, why.text);
        free(bytes);
    }
    /* Absurd counts that the tokens bear out: no sum of them may overflow. */
    int32_t counts[3] = {4, INT32_MAX, 2};
    size_t n_bytes;
    char *bytes = frame(counts, 8, 100, &n_bytes);
    struct status_why why;
    struct eval_logits_file file;
    assert_int_equal(eval_logits_view(&file, "F", bytes, n_bytes, &why), STATUS_OK);
    assert_int_equal(file.n_whole, 0);
    int32_t id = INT32_MAX;
    memcpy(bytes + 20 + 4 * 6, &id, 4);
    assert_int_equal(eval_logits_view(&file, "F", bytes, n_bytes, &why), STATUS_FORMAT);
    assert_non_null(strstr(why.text, "token 2 of chunk 1 is 2147483647; expected 0 to 2147483646"));
    bytes[0] = 'G';
    assert_int_equal(eval_logits_view(&file, "F", bytes, n_bytes, &why), STATUS_FORMAT);
    assert_non_null(strstr(why.text, "begins with 'Glogits_'; a base-logits file begins with"));
    assert_int_equal(eval_logits_view(&file, "F", whole, 19, &why), STATUS_FORMAT);
    assert_non_null(strstr(why.text, "ends at byte 19, within its header"));
    free(bytes);
    struct eval_logits_shape most = {INT32_MAX, INT32_MAX, INT32_MAX};
    assert_true(eval_logits_file_bytes(&most) == UINT64_MAX);
    temp_path(path, folder, "empty");
    temp_write(path, "", 0);
    assert_int_equal(eval_logits_open(&file, path, &why), STATUS_IO);
    unlink(path);
    assert_int_equal(eval_logits_open(&file, path, &why), STATUS_IO);
    assert_int_equal(eval_logits_open(&file, folder, &why), STATUS_IO);
    temp_path(path, folder, "base.kld");
}

/** Damage record `row` of a copy; the comparison must name its chunk and position. */
static void check_damage(size_t row, size_t at, float value, const char *says)
{
    struct status_why why = {""};
    unsigned char *bytes = malloc(n_whole);
    memcpy(bytes, whole, n_whole);
    struct eval_logits_file file;
    assert_int_equal(eval_logits_view(&file, "F", bytes, n_whole, &why), STATUS_OK);
    size_t n_record = eval_logits_record_bytes(&file.shape);
    memcpy(bytes + ((const unsigned char *)file.records - bytes) + row * n_record + at, &value,
           sizeof value);
    struct evaluation e;
    assert_int_equal(compare(&e, &file, 0, &why), STATUS_FORMAT);
    if (!strstr(why.text, says))
        fail_msg("%s", why.text);
    evaluation_close(&e);
    free(bytes);
}

static void records_that_no_model_wrote(void **state)
{
    (void)state;
    check_damage(0, 0, NAN, "F: chunk 0, position 16 (from 0): the record has the scale nan");
    check_damage(17, 4, INFINITY, "F: chunk 1, position 18 (from 0): the record has the scale ");
    check_damage(N_ROWS - 1, 4, -INFINITY, "F: chunk 5, position 30 (from 0)");
    check_damage(3, 0, -1e-4F, "the scale -0.0001 and");
    check_damage(40, 4, -20.0F,
                 "F: chunk 2, position 26 (from 0): the probabilities of the record "
                 "add up to ");
    check_damage(41, 0, 0.0F, "no model wrote this record");
    check_damage(42, 0, 1.0F, "no model wrote this record");
}

/** Half of the windows now, the rest later: the same bytes as at once. */
static void a_recording_is_gone_on_with(void **state)
{
    (void)state;
    struct status_why why;
    temp_path(path, folder, "twice.kld");
    struct setup setup = usual();
    struct evaluation e;
    for (int run = 0; run < 2; run++) {
        evaluation_open(&e, &setup);
        struct eval_logits_recording recording = recording_of(&e);
        recording.resume = run > 0;
        recording.journal = true;
        struct eval_writer *writer;
        assert_int_equal(eval_logits_writer_open(&writer, &recording, &why), STATUS_OK);
        struct eval_writer *other;
        assert_int_equal(eval_logits_writer_open(&other, &recording, &why), STATUS_IO);
        for (size_t w = 0; w < N_WINDOWS; w++)
            e.table.done[w] = (w % 2 == 0) == (run > 0);
        struct eval_row_sink sink = eval_writer_sink(writer);
        setup.sink = &sink;
        assert_int_equal(evaluation_run(&e, &setup, &why), STATUS_OK);
        assert_int_equal(sink.sync(sink.user, &why), STATUS_OK);
        if (run == 0)
            eval_writer_close(writer, true);
        else
            assert_int_equal(eval_writer_commit(writer, &why), STATUS_OK);
        evaluation_close(&e);
    }
    size_t n_bytes;
    unsigned char *bytes = read_bytes(path, &n_bytes);
    assert_int_equal(n_bytes, n_whole);
    assert_memory_equal(bytes, whole, n_whole);
    free(bytes);
    unlink(path);
    temp_path(path, folder, "base.kld");
}

static void writers_refuse(void **state)
{
    (void)state;
    struct status_why why;
    struct setup setup = usual();
    struct evaluation e;
    evaluation_open(&e, &setup);
    struct eval_logits_recording recording = recording_of(&e);
    struct eval_writer *writer;
    recording.only_new = true;
    assert_int_equal(eval_logits_writer_open(&writer, &recording, &why), STATUS_USAGE);
    assert_non_null(strstr(why.text, "exists; --force replaces it"));
    recording.only_new = false;
    recording.path = "/dev/full";
    assert_int_equal(eval_logits_writer_open(&writer, &recording, &why), STATUS_IO);
    recording.path = "/nonexistent/base.kld";
    assert_int_equal(eval_logits_writer_open(&writer, &recording, &why), STATUS_IO);
    /* A part that belongs to other windows stays as it is. */
    char part[128], other[128];
    temp_path(part, folder, "other.kld.part");
    recording.path = temp_path(other, folder, "other.kld");
    recording.resume = true;
    temp_write(part, whole, 20 + 4 * N_WINDOWS * N_CTX);
    e.stream.ids[5]++;
    assert_int_equal(eval_logits_writer_open(&writer, &recording, &why), STATUS_FORMAT);
    assert_non_null(strstr(why.text, "was begun with other tokens, windows or vocabulary"));
    assert_int_equal(access(part, F_OK), 0);
    temp_write(part, whole, 100);
    assert_int_equal(eval_logits_writer_open(&writer, &recording, &why), STATUS_FORMAT);
    e.stream.ids[5]--;
    unlink(part);
    evaluation_close(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_recording_is_read),
        cmocka_unit_test(later_chunks_alone),
        cmocka_unit_test(truncated_files),
        cmocka_unit_test(hostile_frames),
        cmocka_unit_test(records_that_no_model_wrote),
        cmocka_unit_test(a_recording_is_gone_on_with),
        cmocka_unit_test(writers_refuse),
    };
    return cmocka_run_group_tests(tests, record_whole, remove_whole);
}
