/*
 * Recording a compact base and comparing with it: float32 rows give the live comparison to the
 * bit, scaled float16 rows come as near as they say, and a recording that was broken off ends
 * with the same bytes.
 */
#include <math.h>

#include "eval/identity.h"
#include "eval/reference/compact_source.h"
#include "eval/reference/compact_writer.h"
#include "evaluation.h"
#include "gguf/about/identity.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/temp.h"
#include "tests/harness/tiny_model.h"

#define F16 ASSAY_SOURCE_DIR "/data/tiny.F16.gguf"
#define Q4  ASSAY_SOURCE_DIR "/data/tiny.Q4_K_M.gguf"
enum { N_CTX = 32, N_WINDOWS = 12, N_SCORED = 15, N_ROWS = N_WINDOWS * N_SCORED };

static char folder[64], target[128], part_name[136];
static struct evaluation live; /* F16 and, compared with it, Q4_K_M */

static float soft_cap; /* of all models */

static struct setup usual(void)
{
    struct setup setup = setup_usual(F16, N_CTX, N_WINDOWS);
    setup.soft_cap = soft_cap;
    setup.want_js = true;
    return setup;
}

static int evaluate_live(void **state)
{
    (void)state;
    temp_make(folder);
    temp_path(target, folder, "f16.assay");
    snprintf(part_name, sizeof part_name, "%s.part", target);
    struct setup setup = usual();
    setup.candidates[0] = Q4;
    setup.n_candidates = 1;
    evaluate(&live, &setup);
    return 0;
}

static int close_live(void **state)
{
    (void)state;
    evaluation_close(&live);
    return rmdir(folder);
}

static int remove_files(void **state)
{
    (void)state;
    unlink(target);
    unlink(part_name);
    return 0;
}

static struct eval_compact_recording recording_of(const struct evaluation *e, char id[BASE_HEX],
                                                  enum eval_compact_kind kind)
{
    struct status_why why;
    assert_int_equal(gguf_model_id(id, model_file(e->model), &why), STATUS_OK);
    return (struct eval_compact_recording){.path = target,
                                           .model = e->model,
                                           .model_id = id,
                                           .plan = &e->plan,
                                           .stream = &e->stream,
                                           .kind = kind,
                                           .description = "{}"};
}

/**
 * Record F16, the windows from `from`, which a part is to have those before, up to `until` only.
 * Where that is the last one the file is committed; otherwise the part stays.
 */
static void record(enum eval_compact_kind kind, const char *head_path, size_t from, size_t until)
{
    struct setup setup = usual();
    struct eval_row_sink sink;
    setup.want_js = false;
    setup.sink = &sink;
    setup.batch_tokens = 5 * N_CTX;
    struct evaluation e;
    evaluation_open(&e, &setup);
    struct status_why why = {""};
    char id[BASE_HEX];
    struct eval_compact_recording recording = recording_of(&e, id, kind);
    recording.head_path = head_path;
    recording.resume = access(part_name, F_OK) == 0;
    struct eval_writer *writer;
    eval_compact_writer_open(&writer, &recording, &why);
    assert_string_equal(why.text, "");
    sink = eval_writer_sink(writer);
    static double journal[N_WINDOWS][BASE_SHA256_DOUBLES]; /* what one would keep */
    bool same = true;
    for (size_t w = 0; w < from && same; w++)
        assert_int_equal(sink.restore(writer, w, journal[w], &same, &why), STATUS_OK);
    assert_true(same);
    for (size_t w = 0; w < N_WINDOWS; w++)
        e.table.done[w] = w < from || w >= until;
    assert_int_equal(evaluation_run(&e, &setup, &why), STATUS_OK);
    for (size_t w = from; w < until; w++)
        assert_int_equal(sink.save(writer, w, journal[w], &why), STATUS_OK);
    char recorded_id[BASE_HEX], read_id[BASE_HEX];
    assert_int_equal(eval_compact_writer_id(recorded_id, writer, &why), STATUS_OK);
    if (until < N_WINDOWS)
        eval_writer_close(writer, true);
    else
        assert_int_equal(eval_writer_commit(writer, &why), STATUS_OK);
    struct eval_compact_file file;
    if (until == N_WINDOWS) {
        assert_int_equal(eval_compact_open(&file, target, &why), STATUS_OK);
        assert_int_equal(eval_compact_id(read_id, &file, &why), STATUS_OK);
        assert_string_equal(read_id, recorded_id);
        eval_compact_close(&file);
    }
    evaluation_close(&e);
}

/** Q4_K_M against the recorded base, its windows from `first` on. */
static void compare(struct evaluation *e, size_t first, size_t batch_tokens)
{
    struct status_why why = {""};
    struct eval_compact_file file;
    eval_compact_open(&file, target, &why);
    assert_string_equal(why.text, "");
    if (file.layout.by_path) {
        assert_string_equal(file.head_path, F16);
        char id[BASE_HEX];
        base_digest_hex(id, file.layout.model);
        assert_int_equal(eval_compact_take_head(&file, live.model, id, &why), STATUS_OK);
    }
    struct eval_stream stream;
    assert_int_equal(eval_compact_stream(&stream, &file, &why), STATUS_OK);
    assert_int_equal(stream.n, live.stream.n);
    assert_memory_equal(stream.ids, live.stream.ids, stream.n * sizeof *stream.ids);
    assert_memory_equal(stream.n_text_bytes, live.stream.n_text_bytes, stream.n * sizeof(uint32_t));
    assert_string_equal(stream.sha256, live.stream.sha256);
    assert_true(stream.has_bos == live.stream.has_bos);
    eval_stream_free(&stream);

    struct eval_compact_reading reading;
    struct eval_row_source source;
    assert_int_equal(eval_compact_source_open(&source, &reading, &file, first, &why), STATUS_OK);
    struct setup setup = usual();
    setup.model = Q4;
    setup.base = &source;
    setup.batch_tokens = batch_tokens;
    evaluation_open(e, &setup);
    assert_int_equal(eval_compact_check_vocab(&file, e->model, NULL, &why), STATUS_OK);
    enum status status = evaluation_run(e, &setup, &why);
    assert_string_equal(why.text, "");
    assert_int_equal(status, STATUS_OK);
    eval_compact_source_close(&reading);
    eval_compact_close(&file);
}

static void assert_live(const struct evaluation *e)
{
    assert_memory_equal(e->table.cells, live.table.cells, EVAL_N_COLUMNS * N_ROWS * sizeof(double));
    assert_memory_equal(e->candidate_tables[0].cells, live.candidate_tables[0].cells,
                        EVAL_N_PAIR_COLUMNS * N_ROWS * sizeof(double));
}

static void float32_gives_the_live_comparison(void **state)
{
    (void)state;
    record(EVAL_COMPACT_F32, NULL, 0, N_WINDOWS);
    for (size_t windows = 1; windows <= 7; windows += 3) {
        struct evaluation e;
        compare(&e, 0, windows * N_CTX);
        assert_live(&e);
        evaluation_close(&e);
    }
}

static void a_head_by_path_gives_the_same(void **state)
{
    (void)state;
    record(EVAL_COMPACT_F32, F16, 0, N_WINDOWS);
    struct evaluation e;
    compare(&e, 0, 4 * N_CTX);
    assert_live(&e);
    evaluation_close(&e);
}

static void another_head_is_refused(void **state)
{
    (void)state;
    record(EVAL_COMPACT_F32, F16, 0, N_WINDOWS);
    struct status_why why = {""};
    struct eval_compact_file file;
    assert_int_equal(eval_compact_open(&file, target, &why), STATUS_OK);
    char id[BASE_HEX];
    const struct model *q4 = live.candidates[0];
    assert_int_equal(gguf_model_id(id, model_file(q4), &why), STATUS_OK);
    assert_int_equal(eval_compact_take_head(&file, q4, id, &why), STATUS_FORMAT);
    assert_non_null(strstr(why.text, "another model than the one whose head"));
    base_digest_hex(id, file.layout.model); /* a lie, found out by the head itself */
    assert_int_equal(eval_compact_take_head(&file, q4, id, &why), STATUS_FORMAT);
    assert_non_null(strstr(why.text, "the head is not the one that"));
    struct model_hparams *h = (struct model_hparams *)(uintptr_t)model_hparams(live.model);
    h->logit_soft_cap = 2.0f; /* the same matrix with a soft cap */
    assert_int_equal(eval_compact_take_head(&file, live.model, id, &why), STATUS_FORMAT);
    h->logit_soft_cap = 0.0f;
    assert_int_equal(eval_compact_take_head(&file, live.model, id, &why), STATUS_OK);
    eval_compact_close(&file);
}

/** The error is what the file says, and the divergence moves by about its square. */
static void float16_comes_near(void **state)
{
    (void)state;
    record(EVAL_COMPACT_F16, NULL, 0, N_WINDOWS);
    struct status_why why = {""};
    struct eval_compact_file file;
    assert_int_equal(eval_compact_open(&file, target, &why), STATUS_OK);
    struct eval_compact_error error = {0};
    for (size_t w = 0; w < N_WINDOWS; w++) {
        struct eval_compact_check check = eval_compact_check_of(&file, w);
        eval_compact_error_add(&error, &check.error);
    }
    eval_compact_close(&file);
    double rms = eval_compact_error_rms(&error);
    assert_true(rms > 1e-5 && rms <= error.largest && error.largest <= 0x1p-11);
    struct evaluation e;
    compare(&e, 0, 4 * N_CTX);
    double sum = 0, live_sum = 0, most = 0;
    for (size_t w = 0; w < N_WINDOWS; w++)
        for (size_t i = 0; i < N_SCORED; i++) {
            double p = eval_table_row(&e.table, EVAL_LOG_PROB, w)[i];
            most = fmax(most, fabs(p - eval_table_row(&live.table, EVAL_LOG_PROB, w)[i]));
            sum += eval_table_row(&e.candidate_tables[0], EVAL_KL, w)[i];
            live_sum += eval_table_row(&live.candidate_tables[0], EVAL_KL, w)[i];
        }
    print_message("float16: error RMS %.3g, log p moves by %.3g at most, KLD %.9f, live %.9f\n",
                  rms, most, sum / N_ROWS, live_sum / N_ROWS);
    assert_true(sum != live_sum);
    assert_true(fabs(sum - live_sum) < 1e-3 * live_sum);
    evaluation_close(&e);
}

/** Windows from the fifth of the file on, against a live run of the same tokens. */
static void windows_from_the_middle_are_found(void **state)
{
    (void)state;
    record(EVAL_COMPACT_F32, NULL, 0, N_WINDOWS);
    struct status_why why = {""};
    struct eval_compact_file file;
    assert_int_equal(eval_compact_open(&file, target, &why), STATUS_OK);
    struct eval_compact_reading reading;
    struct eval_row_source source;
    assert_int_equal(eval_compact_source_open(&source, &reading, &file, 5, &why), STATUS_OK);
    const void *rows;
    assert_int_equal(source.rows(source.user, 3, 2, &rows, &why), STATUS_OK);
    assert_ptr_equal(rows, eval_compact_rows_at(&file, 5 * N_SCORED + 3));
    eval_compact_source_close(&reading);
    eval_compact_close(&file);
}

/** A model of that width and seed in a file of the folder. */
static void write_model(const char *path, uint32_t n_embd, uint64_t seed)
{
    const struct tiny_model_options options = {
        .seed = seed, .n_embd = n_embd, .type = GGUF_TYPE_Q8_0, .tied_head = n_embd == 64};
    struct tiny_model model = tiny_model_make(&options);
    temp_write(path, model.data, model.n_bytes);
    free(model.data);
}

static void record_model(const char *model)
{
    struct setup setup = usual();
    struct eval_row_sink sink;
    setup.model = model;
    setup.want_js = false;
    setup.sink = &sink;
    struct evaluation e;
    evaluation_open(&e, &setup);
    char id[BASE_HEX];
    struct status_why why = {""};
    struct eval_compact_recording recording = recording_of(&e, id, EVAL_COMPACT_F32);
    struct eval_writer *writer;
    assert_int_equal(eval_compact_writer_open(&writer, &recording, &why), STATUS_OK);
    sink = eval_writer_sink(writer);
    assert_int_equal(evaluation_run(&e, &setup, &why), STATUS_OK);
    assert_int_equal(eval_writer_commit(writer, &why), STATUS_OK);
    evaluation_close(&e);
}

static void compare_with_live(const char *base, const char *candidate)
{
    struct setup setup = usual();
    setup.model = base;
    setup.candidates[0] = candidate;
    setup.n_candidates = 1;
    struct evaluation both, other;
    evaluate(&both, &setup);
    struct status_why why = {""};
    struct eval_compact_file file;
    struct eval_compact_reading reading;
    struct eval_row_source source;
    assert_int_equal(eval_compact_open(&file, target, &why), STATUS_OK);
    assert_true(file.layout.soft_cap == soft_cap && file.layout.version == (soft_cap > 0 ? 2 : 1));
    /* The cap shows: logits are from -2 to 2. */
    double least = soft_cap > 0 ? -2.0 * (double)soft_cap - log((double)file.layout.n_vocab) : -100;
    assert_int_equal(eval_compact_source_open(&source, &reading, &file, 0, &why), STATUS_OK);
    setup = usual();
    setup.model = candidate;
    setup.base = &source;
    evaluate(&other, &setup);
    assert_int_not_equal(file.layout.width, model_hparams(other.model)->n_embd);
    assert_memory_equal(other.table.cells, both.table.cells,
                        EVAL_N_COLUMNS * N_ROWS * sizeof(double));
    assert_memory_equal(other.candidate_tables[0].cells, both.candidate_tables[0].cells,
                        EVAL_N_PAIR_COLUMNS * N_ROWS * sizeof(double));
    for (size_t i = 0; i < N_ROWS; i++)
        assert_true(eval_table_row(&both.table, EVAL_LOG_PROB, i / N_SCORED)[i % N_SCORED] > least);
    evaluation_close(&other);
    evaluation_close(&both);
    eval_compact_source_close(&reading);
    eval_compact_close(&file);
    unlink(target);
}

/** A candidate of another width than the base, of the same vocabulary; with and without caps. */
static void models_of_another_width_are_compared(void **state)
{
    (void)state;
    char wide[128], narrow[128];
    temp_path(wide, folder, "wide.gguf");
    temp_path(narrow, folder, "narrow.gguf");
    write_model(wide, 128, 1);
    write_model(narrow, 64, 2);
    for (soft_cap = 0.0f; soft_cap < 3.0f; soft_cap += 2.0f) {
        record_model(wide);
        compare_with_live(wide, narrow);
        record_model(narrow);
        compare_with_live(narrow, wide);
    }
    soft_cap = 0.0f;
    unlink(wide);
    unlink(narrow);
}

static char *all_bytes(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    char *bytes = malloc(*n);
    assert_int_equal(fread(bytes, 1, *n, f), *n);
    fclose(f);
    return bytes;
}

static void continued_recordings_end_with_the_same_bytes(void **state)
{
    (void)state;
    for (enum eval_compact_kind kind = EVAL_COMPACT_F32; kind <= EVAL_COMPACT_F16; kind++) {
        size_t n, n_again;
        record(kind, NULL, 0, N_WINDOWS);
        char *whole = all_bytes(target, &n);
        unlink(target);
        record(kind, NULL, 0, 4);
        record(kind, NULL, 4, 9);
        record(kind, NULL, 9, N_WINDOWS);
        char *again = all_bytes(target, &n_again);
        assert_int_equal(n, n_again);
        assert_memory_equal(whole, again, n);
        unlink(target);
        free(whole);
        free(again);
    }
}

static struct eval_compact_offsets places_of_target(void)
{
    struct status_why why;
    struct eval_compact_file file;
    assert_int_equal(eval_compact_open(&file, target, &why), STATUS_OK);
    struct eval_compact_offsets offsets = file.offsets;
    eval_compact_close(&file);
    return offsets;
}

/** That a journal finds the windows before n_kept in the part, and not the next. checks: of all. */
static void assert_kept(const char *checks, size_t n_kept)
{
    struct setup setup = usual();
    struct evaluation e;
    evaluation_open(&e, &setup);
    char id[BASE_HEX];
    struct status_why why = {""};
    struct eval_compact_recording recording = recording_of(&e, id, EVAL_COMPACT_F16);
    struct eval_writer *writer;
    recording.resume = true;
    assert_int_equal(eval_compact_writer_open(&writer, &recording, &why), STATUS_OK);
    struct eval_row_sink sink = eval_writer_sink(writer);
    for (size_t w = 0; w < N_WINDOWS && w <= n_kept; w++) {
        struct eval_compact_check check;
        double state[BASE_SHA256_DOUBLES];
        bool same;
        memcpy(&check, checks + w * sizeof check, sizeof check);
        memcpy(state, check.sha256, BASE_SHA256_BYTES);
        assert_int_equal(sink.restore(sink.user, w, state, &same, &why), STATUS_OK);
        assert_int_equal(same, w < n_kept);
    }
    eval_writer_close(writer, true);
    evaluation_close(&e);
}

/** Go on with a part of which the windows before `end` are whole. */
static void check_part(const char *whole, size_t n, const char *part, size_t n_part, size_t end)
{
    struct eval_compact_offsets offsets = places_of_target();
    size_t n_kept = end > offsets.rows ? (end - offsets.rows) / offsets.window_bytes : 0, n_again;
    unlink(target);
    temp_write(part_name, part, n_part);
    assert_kept(whole + offsets.checks, n_kept);
    temp_write(part_name, part, n_part);
    record(EVAL_COMPACT_F16, NULL, n_kept, N_WINDOWS);
    char *again = all_bytes(target, &n_again);
    assert_int_equal(n, n_again);
    assert_memory_equal(whole, again, n);
    free(again);
}

/** Wherever a kill cuts the part, what is counted as kept is whole, and the rest is done again. */
static void a_torn_part_is_continued(void **state)
{
    (void)state;
    size_t n;
    record(EVAL_COMPACT_F16, NULL, 0, N_WINDOWS);
    char *whole = all_bytes(target, &n);
    const size_t cuts[] = {0, 100, 512, 5000, n - 20000, n - 1};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++)
        check_part(whole, n, whole, cuts[i], cuts[i]);
    /* A file of full size may have a row that never reached the disk. */
    char *torn = malloc(n);
    size_t hole = n - 10 * 15 * 200;
    memcpy(torn, whole, n);
    memset(torn + hole, 0, 100);
    check_part(whole, n, torn, n, hole);
    free(torn);
    free(whole);
}

static void another_recording_is_not_continued(void **state)
{
    (void)state;
    record(EVAL_COMPACT_F32, NULL, 0, 4);
    struct setup setup = usual();
    struct evaluation e;
    evaluation_open(&e, &setup);
    char id[BASE_HEX];
    struct status_why why = {""};
    struct eval_compact_recording recording = recording_of(&e, id, EVAL_COMPACT_F16);
    struct eval_writer *writer;
    recording.resume = true;
    assert_int_equal(eval_compact_writer_open(&writer, &recording, &why), STATUS_FORMAT);
    assert_non_null(strstr(why.text, "was begun with another model, text or other settings"));
    assert_null(writer);
    assert_int_equal(access(part_name, F_OK), 0); /* not ours to remove */
    evaluation_close(&e);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, remove_files)
    const struct CMUnitTest tests[] = {TEST(float32_gives_the_live_comparison),
                                       TEST(a_head_by_path_gives_the_same),
                                       TEST(another_head_is_refused),
                                       TEST(float16_comes_near),
                                       TEST(windows_from_the_middle_are_found),
                                       TEST(models_of_another_width_are_compared),
                                       TEST(continued_recordings_end_with_the_same_bytes),
                                       TEST(a_torn_part_is_continued),
                                       TEST(another_recording_is_not_continued)};
    return cmocka_run_group_tests(tests, evaluate_live, close_live);
}
