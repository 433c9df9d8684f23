/*
 * Whole forward passes and scores by the CUDA backend: on a device made of the host's memory, and
 * on a real one where there is one. `exact` gives the CPU backend's bits; `high` and `fast` are as
 * near to float64 as their roundings let expect, and give the same bits for any cut of the batch.
 */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"
#include "kernels/cuda/context.h"
#include "kernels/operations.h"
#include "kernels/quant/registry.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/compare.h"
#include "tests/harness/host_device.h"
#include "tests/harness/reference_list.h"
#include "tests/harness/run_kernel.h"
#include "tests/model/fixture.h"
#include "tests/model/float64.h"

enum { WINDOW = 64, SHORT = 16, TOKENS = 2 * WINDOW };

/** Where the CUDA backend runs; set by main for all tests. */
static bool on_real_device;

static struct kern_cuda_device *device_open(const struct host_device_options *options,
                                            struct host_device_log *log)
{
    struct kern_cuda_device *device;
    struct status_why why = {""};
    if (!on_real_device) {
        device = host_device_open(options, log);
        assert_non_null(device);
    } else if (kern_cuda_device_open(&device, 0, &why) != STATUS_OK) {
        fail_msg("%s", why.text);
    }
    return device;
}

/** Put a CUDA backend in place of the fixture's; small sizes, so that much is cut and streamed. */
static void use_cuda(struct fixture *f, enum kern_precision precision,
                     const struct host_device_options *way, struct host_device_log *log)
{
    struct kern_cuda_options options = {
        .precision = precision,
        .weight_bytes = 400 << 10,
        .panel_size = 64 << 10,
        .n_slots = 4,
        .product_tokens = 64,
        .product_step = 16,
    };
    struct status_why why = {""};
    kern_close(f->backend);
    if (kern_cuda_open(&f->backend, device_open(way, log), &options, &why) != STATUS_OK)
        fail_msg("%s", why.text);
}

/** Log-probabilities of each next token of three windows, and the bits of the hidden rows. */
struct outcome {
    float *hidden;
    double *log_probs;
};

static struct outcome run(struct fixture *f, const int32_t *tokens, size_t tile)
{
    const struct model_segment segments[] = {
        {.start = 0, .n_tokens = WINDOW, .parent = -1},
        {.start = WINDOW, .n_tokens = SHORT, .parent = -1},
        {.start = WINDOW + SHORT,
         .n_tokens = WINDOW - SHORT,
         .parent = -1,
         /* Embeddings alone may differ in the sign of a zero. */
         .n_unwanted = model_hparams(f->model)->n_layers > 1 ? 20 : 0},
    };
    const struct model_batch batch = {
        .tokens = tokens, .n_tokens = TOKENS, .segments = segments, .n_segments = 3};
    struct outcome o;
    o.hidden = fixture_hidden(f, &batch, (struct fixture_run){.tile_tokens = tile});
    o.log_probs = fixture_log_probs(f, o.hidden, tokens + 1, TOKENS - 1);
    return o;
}

static void outcome_free(struct outcome *o)
{
    free(o->hidden);
    free(o->log_probs);
}

static void assert_same_bits(const struct outcome *a, const struct outcome *b, size_t width)
{
    assert_int_equal(compare_bits(a->hidden, b->hidden, TOKENS * width), TOKENS * width);
    assert_memory_equal(a->log_probs, b->log_probs, (TOKENS - 1) * sizeof(double));
}

/** A model in `exact`, against the CPU; closes it. */
static void check_model(struct fixture f, size_t tile, size_t way_number)
{
    int32_t *tokens = fixture_tokens(&f, 7, TOKENS);
    struct host_device_options way = {.order = (enum host_device_order)(way_number % 3),
                                      .backwards = way_number % 2 == 1};
    struct host_device_log log = {0};
    struct outcome expected = run(&f, tokens, tile);
    use_cuda(&f, KERN_PRECISION_EXACT, &way, &log);
    struct outcome found = run(&f, tokens, tile);
    assert_same_bits(&found, &expected, model_hparams(f.model)->n_embd);
    outcome_free(&expected);
    outcome_free(&found);
    free(tokens);
    fixture_close(&f);
    assert_int_equal(log.n_left, 0);
}

static void check_exact(const struct tiny_model_options *options, size_t tile, size_t way_number)
{
    check_model(fixture_open(options), tile, way_number);
}

static void check_file(const char *path, size_t way_number)
{
    print_message("%s\n", path);
    check_model(fixture_open_file(path, &(struct model_options){0}), 50, way_number);
}

/** Every architecture of the reference material. */
static void test_architectures(void **state)
{
    (void)state;
    struct reference_list models;
    if (getenv("ASSAY_REFERENCE_MODELS") || run_kernel_is_slow() ||
        !reference_list_open(&models, "models-arch"))
        skip();
    while (reference_list_next(&models))
        if (strstr(models.name, ".F32.gguf"))
            check_file(models.path, models.n);
}

/** All models of a folder that was named for it. */
static void test_given_models(void **state)
{
    (void)state;
    const char *given = getenv("ASSAY_REFERENCE_MODELS");
    DIR *folder = given && !run_kernel_is_slow() ? opendir(given) : NULL;
    if (!folder)
        skip();
    size_t n = 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        char path[512];
        if (!strstr(entry->d_name, ".F32.gguf"))
            continue;
        snprintf(path, sizeof path, "%s/%s", given, entry->d_name);
        check_file(path, n++);
    }
    closedir(folder);
    assert_true(n > 0);
}

static void test_types(void **state)
{
    (void)state;
    const struct kern_quant *format;
    if (run_kernel_is_slow())
        skip(); /* test_cuda_linear.c has them */
    for (size_t i = 0; (format = kern_quant_at(i)) && (int)format->type < GGUF_FIRST_FOLDER; i++)
        check_exact(
            &(struct tiny_model_options){
                .type = format->type, .n_embd = 256, .n_ff = 256, .head_size = 64, .n_layers = 1},
            0, i);
}

static void test_features(void **state)
{
    (void)state;
    const struct tiny_model_options models[] = {
        {.biases = true, .scales = true, .tied_head = true},
        {.n_experts = 5, .n_experts_used = 2},
        {.n_experts = 4, .n_experts_used = 4, .split_experts = true},
        {.fused_qkv = true, .vary_layers = true, .rope_factors = true},
        {.long_factors = true, .rope_original_ctx = 32},
        {.sliding_window = 9, .rope_scaling = "yarn", .rope_original_ctx = 32, .n_rot = 8},
        {.type = GGUF_TYPE_Q8_0, .n_layers = 4, .n_ff = 192},
    };
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        check_exact(&models[i], 50, i);
}

/** A session brings a layer's weights to the device; the forward pass brings none. */
static void test_session_preloads(void **state)
{
    (void)state;
    enum { EXPERTS = 3, WEIGHTS = 4 + 1 + 3 * EXPERTS /* attention, router, experts */ };
    struct fixture f = fixture_open(&(struct tiny_model_options){
        .n_layers = 1, .n_ff = 32, .n_experts = EXPERTS, .n_experts_used = 2});
    struct host_device_log log = {0};
    use_cuda(&f, KERN_PRECISION_EXACT, &(struct host_device_options){0}, &log);
    const size_t *n_uploads = &kern_cuda_of(f.backend)->cache.n_uploads;
    struct model_session_options options = {.max_batch = WINDOW, .max_segment = WINDOW};
    struct model_session *session;
    assert_int_equal(model_session_open(&session, f.model, f.backend, &options, NULL), STATUS_OK);
    model_session_close(session);
    assert_int_equal(*n_uploads, WEIGHTS);
    int32_t *tokens = fixture_tokens(&f, 9, WINDOW);
    struct model_segment segment;
    struct model_batch batch = fixture_window(tokens, WINDOW, &segment);
    free(fixture_hidden(&f, &batch, (struct fixture_run){0}));
    assert_int_equal(*n_uploads, WEIGHTS);
    free(tokens);
    fixture_close(&f);
}

/**
 * What a batch of windows like the one before brings to the device: the rows of its tokens. What
 * every layer needs is there, and nothing is allocated.
 */
static void test_copies(void **state)
{
    (void)state;
    enum { N_LAYERS = 4 };
    for (size_t i = 0; i < 2; i++) {
        struct fixture f = fixture_open(&(struct tiny_model_options){.n_layers = N_LAYERS});
        struct host_device_log log = {0};
        use_cuda(&f, i ? KERN_PRECISION_EXACT : KERN_PRECISION_FAST,
                 &(struct host_device_options){0}, &log);
        kern_cuda_of(f.backend)->cache.resident_limit = 64 << 20;
        struct model_session_options options = {.max_batch = WINDOW, .max_segment = WINDOW};
        struct model_session *session;
        int32_t *tokens = fixture_tokens(&f, 9, 2 * WINDOW);
        void *x;
        assert_int_equal(model_session_open(&session, f.model, f.backend, &options, NULL),
                         STATUS_OK);
        assert_int_equal(kern_alloc(f.backend, &x, 1 << 20, NULL), STATUS_OK);
        struct kern_head head = model_kern_head(f.model);
        assert_int_equal(kern_preload_heads(f.backend, &head, 1, NULL), STATUS_OK);
        size_t n_copies = 0, n_allocs[2];
        for (size_t k = 0; k < 2; k++) {
            struct model_segment segment;
            struct model_batch batch = fixture_window(tokens + k * WINDOW, WINDOW, &segment);
            n_copies = log.n_copies_in;
            n_allocs[k] = log.n_allocs;
            assert_int_equal(model_embed(session, &batch, x, NULL), STATUS_OK);
            assert_int_equal(model_forward(session, &batch, 0, N_LAYERS, x, NULL), STATUS_OK);
            n_allocs[k] = log.n_allocs - n_allocs[k];
        }
        if (!on_real_device) {
            assert_int_equal(log.n_copies_in - n_copies, 1);
            assert_int_equal(n_allocs[1], 0);
            /* The gains of two norms in each layer, positions, ranges, tasks, scratch memory. */
            assert_true(n_allocs[0] <= 2 * N_LAYERS + 3 + 4);
        }
        kern_free(f.backend, x);
        model_session_close(session);
        free(tokens);
        fixture_close(&f);
    }
}

/** ln p of the tokens after the first of the window, in double; unit: of simulated rounding. */
static void evaluate_truth(const struct fixture *f, const int32_t *tokens, double unit,
                           double *log_probs)
{
    struct float64_model *m = float64_open(model_file(f->model));
    size_t width = float64_width(m);
    double *hidden = malloc(WINDOW * width * sizeof *hidden);
    double *all = malloc(float64_vocab(m) * sizeof *all);
    assert_true(hidden && all);
    float64_simulate_rounding(m, unit, 3);
    float64_hidden(m, tokens, WINDOW, hidden);
    for (size_t t = 0; t + 1 < WINDOW; t++) {
        float64_log_probs(m, hidden + t * width, all);
        log_probs[t] = all[tokens[t + 1]];
    }
    free(hidden);
    free(all);
    float64_close(m);
}

static double worst_of(const double *found, const double *expected)
{
    double worst = 0.0;
    for (size_t t = 0; t + 1 < WINDOW; t++)
        worst = fmax(worst, fabs(found[t] - expected[t]));
    return worst;
}

/*
 * As in test_forward_float64.c: the double pass with random errors of the expected size in every
 * product says how far a model carries them; the real errors are another draw of that size.
 * `high` has operands of 22 bits and float32's sums, `fast` operands of 11.
 */
static void test_precisions(void **state)
{
    (void)state;
    const double margin = 3;
    const struct {
        enum kern_precision precision;
        double unit;
    } rows[] = {{KERN_PRECISION_HIGH, 0x1p-23}, {KERN_PRECISION_FAST, 0x1p-12}};
    for (size_t i = 0; i < 2; i++) {
        struct fixture f = fixture_open(&(struct tiny_model_options){
            .type = GGUF_TYPE_Q4_K, .n_embd = 256, .n_ff = 512, .head_size = 64});
        int32_t *tokens = fixture_tokens(&f, 8, TOKENS);
        double truth[WINDOW], simulated[WINDOW];
        evaluate_truth(&f, tokens, 0, truth);
        evaluate_truth(&f, tokens, rows[i].unit, simulated);
        struct host_device_options way = {.order = HOST_DEVICE_UPLOADS_LATE};
        struct host_device_log log = {0};
        use_cuda(&f, rows[i].precision, &way, &log);
        struct outcome found = run(&f, tokens, 0), cut = run(&f, tokens, 33);
        double actual = worst_of(found.log_probs, truth), expected = worst_of(simulated, truth);
        print_message("precision %d: worst ln p off by %.2g (simulated %.2g)\n",
                      (int)rows[i].precision, actual, expected);
        assert_true(actual < margin * expected);
        assert_same_bits(&cut, &found, 256);
        outcome_free(&found);
        outcome_free(&cut);
        free(tokens);
        fixture_close(&f);
    }
}

/** Activations far beyond the range of a half: the row scaling takes them in. */
static void test_huge_weights(void **state)
{
    (void)state;
    struct fixture f = fixture_open(&(struct tiny_model_options){.n_layers = 1});
    struct host_device_log log = {0};
    use_cuda(&f, KERN_PRECISION_FAST, &(struct host_device_options){0}, &log);
    float matrix[16 * 32], x[32], *memory[2];
    for (size_t i = 0; i < sizeof matrix / sizeof *matrix; i++)
        matrix[i] = 1e30f * (float)(1 + i % 7);
    for (size_t i = 0; i < 32; i++)
        x[i] = 1e-30f * (float)(1 + i % 5);
    struct kern_weight w = {.type = GGUF_TYPE_F32,
                            .n_rows = 16,
                            .n_cols = 32,
                            .row_bytes = 32 * sizeof(float),
                            .data = matrix,
                            .scale = 1.0f,
                            .generation = 1};
    for (size_t i = 0; i < 2; i++) {
        void *bytes;
        assert_int_equal(kern_alloc(f.backend, &bytes, sizeof x, NULL), STATUS_OK);
        memory[i] = bytes;
    }
    assert_int_equal(kern_upload(f.backend, memory[0], x, sizeof x, NULL), STATUS_OK);
    struct kern_linear op = {
        .weight = &w, .x = memory[0], .y = memory[1], .y_stride = 16, .n_tokens = 1};
    float y[16];
    assert_int_equal(kern_linear(f.backend, &op, NULL), STATUS_OK);
    assert_int_equal(kern_download(f.backend, y, memory[1], sizeof y, NULL), STATUS_OK);
    for (size_t r = 0; r < 16; r++) {
        double sum = 0.0;
        for (size_t k = 0; k < 32; k++)
            sum += (double)matrix[r * 32 + k] * (double)x[k];
        /* Two operands rounded to 11 bits. */
        assert_true(fabs((double)y[r] - sum) <= sum * 0x1p-10);
    }
    kern_free(f.backend, memory[0]);
    kern_free(f.backend, memory[1]);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_architectures),
        cmocka_unit_test(test_given_models),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_features),
        cmocka_unit_test(test_session_preloads),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_precisions),
        cmocka_unit_test(test_huge_weights),
    };
    int n_failed = cmocka_run_group_tests_name("host device", tests, NULL, NULL);
    on_real_device = true;
    if (kern_cuda_n_devices() == 0)
        puts("no CUDA device here: the real device is not tested");
    else
        n_failed += cmocka_run_group_tests_name("CUDA device", tests, NULL, NULL);
    return n_failed;
}
