/*
 * The memory that a run takes is what was said before it: at least that much never, and no
 * more than 10 % less.
 *
 * Usage: test_memory [MODEL]. With a model (bench/make_model makes it: width 2048, a vocabulary
 * of 128256 tokens) one window of 4096 tokens at the default batch must fit in 300 MB beside
 * the weights. Without one the bundled model is taken.
 */
#include <math.h>

#include "eval/identity.h"
#include "eval/reference/logits_source.h"
#include "eval/run/memory.h"
#include "eval/units/choice.h"
#include "eval/units/windows.h"
#include "evaluation.h"
#include "gguf/about/identity.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/temp.h"

/** Windows of 256 tokens that make two batches of 4096, and a shorter one. */
enum { TWO_BATCHES = 36 };

static const char *wide_model;

/** Samples what the process holds beside the models while it runs. */
struct watch {
    const struct gguf_file *file;
    const struct evaluation *evaluation; /* has more models; NULL: there are none */
    double most;
};

static double present(const struct watch *watch)
{
    double bytes = eval_memory_present(watch->file);
    for (size_t i = 0; watch->evaluation && i < watch->evaluation->n_candidates; i++)
        bytes -= eval_memory_resident(model_file(watch->evaluation->candidates[i]));
    return bytes;
}

static void on_progress(void *user, const struct eval_progress *p)
{
    (void)p;
    struct watch *watch = user;
    watch->most = fmax(watch->most, present(watch));
}

/** The bound without what runs before it took, in the same process. */
static double of_this_run(const struct eval_memory *m)
{
    return m->weights + m->present + m->scorer + m->scores;
}

static struct eval_memory check_run(struct setup *setup)
{
    struct watch watch = {0};
    struct evaluation e;
    struct status_why why = {0};
    setup->cpu.isa_cap = KERN_ISA_COUNT - 1;
    setup->cpu.n_threads = 2;
    setup->run.progress = on_progress;
    setup->run.user = &watch;
    evaluation_open(&e, setup);
    watch.file = model_file(e.model);
    watch.evaluation = &e;
    /* Pages of the models that are resident beforehand must not count twice. */
    char hash[BASE_HEX];
    for (size_t i = 0; i < e.n_candidates; i++)
        assert_int_equal(gguf_file_hash(hash, model_file(e.candidates[i]), NULL), STATUS_OK);
    if (evaluation_run(&e, setup, &why) != STATUS_OK)
        fail_msg("%s", why.text);
    struct eval_memory m = e.memory;
    double peak = m.weights + watch.most;
    print_message("batch %zu tokens: said %.1f MB (weights %.1f, present %.1f, scorer %.1f, scores "
                  "%.1f), took %.1f MB\n",
                  e.stats.max_batch_tokens, of_this_run(&m) / 1e6, m.weights / 1e6, m.present / 1e6,
                  m.scorer / 1e6, m.scores / 1e6, peak / 1e6);
    assert_true(peak <= of_this_run(&m));
    /* The bound allows 1.5 MB for code that a run is the first to touch. A process that has run
     * before touches none, which is more than a tenth of 25 MB together with the rest. */
    assert_true(peak >= 0.9 * (of_this_run(&m) - EVAL_MEMORY_SMALL_THINGS));
    evaluation_close(&e);
    return m;
}

/** What is said before a run of perplexity alone, which does not begin. */
static struct eval_memory said_alone(const struct setup *setup)
{
    struct evaluation e;
    evaluation_open(&e, setup);
    struct eval_models models = {.model = e.model, .backends = &e.backend, .n_backends = 1};
    struct eval_windows windows = {
        .plan = &e.plan, .stream = &e.stream, .tables = &e.table, .n_tables = 1};
    eval_windows_open(&windows);
    assert_int_equal(eval_run_prepare(&windows.units, &models, setup->batch_tokens, NULL),
                     STATUS_OK);
    struct eval_memory m = eval_run_memory(&windows.units, &models, &setup->run);
    eval_windows_close(&windows);
    evaluation_close(&e);
    return m;
}

static void is_what_was_said(void **state)
{
    (void)state;
    static const struct {
        size_t batch, max_windows;
    } rows[] = {{0, 0}, {64, 8}, {20000, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct setup setup = {
            .model = ASSAY_SOURCE_DIR "/data/tiny.F16.gguf",
            .text = ASSAY_SOURCE_DIR "/data/text.txt",
            .plan = {.n_ctx = 256, .max_windows = rows[i].max_windows},
            .batch_tokens = rows[i].batch,
        };
        check_run(&setup);
    }
}

static void is_what_was_said_of_several_models(void **state)
{
    (void)state;
    struct setup setup = {
        .model = ASSAY_SOURCE_DIR "/data/tiny.F16.gguf",
        .text = ASSAY_SOURCE_DIR "/data/text.txt",
        .candidates = {ASSAY_SOURCE_DIR "/data/tiny.Q4_K_M.gguf",
                       ASSAY_SOURCE_DIR "/data/tiny.F16.gguf"},
        .n_candidates = 2,
        .plan = {.n_ctx = 256, .max_windows = TWO_BATCHES},
        .batch_tokens = 4096,
    };
    check_run(&setup);
}

static enum status swallow(void *user, struct kern_backend *backend, size_t first, size_t n_rows,
                           const void *rows, struct status_why *why)
{
    (void)user, (void)backend, (void)first, (void)n_rows, (void)rows, (void)why;
    return STATUS_OK;
}

static struct eval_memory check_recording(struct setup setup)
{
    struct eval_row_sink sink = {.kind = EVAL_ROWS_CODES, .write = swallow};
    setup.sink = &sink;
    return check_run(&setup);
}

/** A base-logits file of uniform distributions, as many as the setup's windows want. */
static void write_uniform(const char *path, const struct setup *setup)
{
    struct evaluation e;
    evaluation_open(&e, setup);
    struct eval_logits_shape shape = {.n_ctx = e.plan.window,
                                      .n_vocab = model_head(e.model)->n_rows,
                                      .n_chunks = e.plan.n_windows};
    int32_t counts[] = {(int32_t)shape.n_ctx, (int32_t)shape.n_vocab, (int32_t)shape.n_chunks};
    float record[2] = {0, (float)-log((double)shape.n_vocab)};
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fwrite(eval_logits_magic, sizeof eval_logits_magic, 1, f);
    fwrite(counts, sizeof counts, 1, f);
    for (size_t i = 0; i < shape.n_chunks * eval_logits_n_scored(&shape); i++) {
        uint64_t at = eval_logits_head_bytes(&shape) + i * eval_logits_record_bytes(&shape);
        assert_int_equal(fseeko(f, (off_t)at, SEEK_SET), 0);
        fwrite(record, sizeof record, 1, f);
    }
    assert_int_equal(fflush(f), 0);
    assert_int_equal(ftruncate(fileno(f), (off_t)eval_logits_file_bytes(&shape)), 0);
    fclose(f);
    evaluation_close(&e);
}

static struct eval_memory check_comparing(struct setup setup)
{
    char folder[64], path[128];
    temp_make(folder);
    write_uniform(temp_path(path, folder, "uniform.kld"), &setup);
    struct eval_logits_file file;
    struct eval_logits_reading reading;
    assert_int_equal(eval_logits_open(&file, path, NULL), STATUS_OK);
    struct eval_row_source source = eval_logits_source(&reading, &file, 0, -(double)INFINITY);
    setup.base = &source;
    struct eval_memory m = check_run(&setup);
    eval_logits_close(&file);
    unlink(path);
    rmdir(folder);
    return m;
}

static void is_what_was_said_of_rows(void **state)
{
    (void)state;
    struct setup setup = {
        .model = ASSAY_SOURCE_DIR "/data/tiny.F16.gguf",
        .text = ASSAY_SOURCE_DIR "/data/text.txt",
        .plan = {.n_ctx = 256, .max_windows = TWO_BATCHES},
        .batch_tokens = 4096,
    };
    check_recording(setup);
    check_comparing(setup);
}

static void open_tasks(struct base_text *text, struct eval_choices *choices,
                       const struct model *model)
{
    struct eval_dataset dataset;
    struct eval_choices_options options = {.kind = EVAL_HELLASWAG, .n_tasks = 400};
    struct status_why why = {""};
    assert_int_equal(base_text_read_whole(text, ASSAY_SOURCE_DIR "/tests/data/tasks/hellaswag.txt",
                                          BASE_TEXT_MAX_BYTES, &why),
                     STATUS_OK);
    assert_int_equal(eval_dataset_hellaswag(&dataset, text->data, text->n_bytes, &why), STATUS_OK);
    assert_int_equal(eval_choices_make(choices, &dataset, &options, model_tokenizer(model), &why),
                     STATUS_OK);
    eval_dataset_free(&dataset);
}

static void is_what_was_said_of_tasks(void **state)
{
    (void)state;
    static const size_t batches[] = {1, 2048};
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        struct setup setup = {
            .model = ASSAY_SOURCE_DIR "/data/tiny.F16.gguf",
            .text = ASSAY_SOURCE_DIR "/data/text.txt",
            .plan = {.n_ctx = 256, .max_windows = 1},
            .cpu = {.isa_cap = KERN_ISA_COUNT - 1, .n_threads = 2},
        };
        struct evaluation e;
        struct base_text text;
        struct eval_choices choices;
        evaluation_open(&e, &setup);
        open_tasks(&text, &choices, e.model);
        struct watch watch = {.file = model_file(e.model)};
        struct eval_models models = {.model = e.model, .backends = &e.backend, .n_backends = 1};
        struct eval_run_options run = {.progress = on_progress, .user = &watch};
        assert_int_equal(eval_run_prepare(&choices.sequences.units, &models, batches[i], NULL),
                         STATUS_OK);
        struct eval_memory m = eval_run_memory(&choices.sequences.units, &models, &run);
        assert_int_equal(eval_run(&choices.sequences.units, &models, &run, &e.stats, NULL),
                         STATUS_OK);
        double peak = m.weights + watch.most;
        print_message("tasks, batch %zu: said %.1f MB, took %.1f MB\n", batches[i],
                      of_this_run(&m) / 1e6, peak / 1e6);
        assert_true(peak <= of_this_run(&m));
        assert_true(peak >= 0.9 * (of_this_run(&m) - EVAL_MEMORY_SMALL_THINGS));
        eval_choices_free(&choices);
        base_text_free(&text);
        evaluation_close(&e);
    }
}

static void stays_within_the_limit(void **state)
{
    (void)state;
    struct setup setup = {
        .model = wide_model,
        .text = ASSAY_SOURCE_DIR "/data/text.txt",
        .plan = {.n_ctx = 4096, .max_windows = 1},
        .cpu.precision = KERN_PRECISION_HIGH,
    };
    struct eval_memory m = check_run(&setup);
    assert_true(of_this_run(&m) - m.weights <= 300e6);
}

/** Recording, and comparing with a file, take at most 200 MB more than perplexity alone. */
static void rows_stay_within_the_limit(void **state)
{
    (void)state;
    struct setup setup = {
        .model = wide_model,
        .text = ASSAY_SOURCE_DIR "/data/text.txt",
        .plan = {.n_ctx = 512, .max_windows = 1},
        .cpu = {.isa_cap = KERN_ISA_COUNT - 1, .n_threads = 2, .precision = KERN_PRECISION_HIGH},
    };
    /* That it is what a run takes, stays_within_the_limit() has found. */
    struct eval_memory m = said_alone(&setup);
    double alone = of_this_run(&m);
    print_message("alone: said %.1f MB\n", alone / 1e6);
    m = check_recording(setup);
    assert_true(of_this_run(&m) - alone <= 200e6);
    m = check_comparing(setup);
    assert_true(of_this_run(&m) - alone <= 200e6);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest bundled[] = {
        cmocka_unit_test(is_what_was_said),
        cmocka_unit_test(is_what_was_said_of_several_models),
        cmocka_unit_test(is_what_was_said_of_rows),
        cmocka_unit_test(is_what_was_said_of_tasks),
    };
    const struct CMUnitTest wide[] = {
        cmocka_unit_test(stays_within_the_limit),
        cmocka_unit_test(rows_stay_within_the_limit),
    };
    if (argc < 2)
        return cmocka_run_group_tests(bundled, NULL, NULL);
    wide_model = argv[1];
    return cmocka_run_group_tests(wide, NULL, NULL);
}
