/*
 * What no hidden row may depend on, to the bit: the tile, the other windows of the batch, a
 * shared prefix, rows that nobody wants, calls by layer ranges, threads, the ISA, another model
 * running beside it.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/cmocka.h"
#include "tests/harness/compare.h"
#include "tests/harness/sparse_model.h"
#include "tests/model/fixture.h"

/** A dense model, one with experts, one with a sliding window and uneven layers, one with other
 * angles for the longer sequences, and two whose keys and values are rounded: turned, and not. */
static const struct tiny_model_options models[] = {
    {.seed = 1, .type = GGUF_TYPE_Q8_0},
    {.seed = 2, .n_experts = 4, .n_experts_used = 2},
    {.seed = 3, .sliding_window = 70, .n_layers = 3, .vary_layers = true, .biases = true},
    {.seed = 4, .long_factors = true, .rope_original_ctx = 66},
    {.seed = 5, .head_size = 64},
    {.seed = 6, .head_size = 32, .sliding_window = 70},
};
/** And two whose queries choose their keys: in some tiles, for a batch; in all, for a tile. */
static const struct sparse_model_options sparse_models[] = {{"glm-dsa", 71}, {"minimax-m3", 4}};
enum {
    N_TINY = sizeof models / sizeof models[0],
    N_MODELS = N_TINY + sizeof sparse_models / sizeof sparse_models[0]
};
static const struct model_kv_types kv_types[N_MODELS] = {
    [4] = {{GGUF_TYPE_Q4_0, 0}, {GGUF_TYPE_IQ4_NL, 0}, false},
    [5] = {{GGUF_TYPE_Q8_0, 0},
           {GGUF_TYPE_BF16, 0},
           false,
           {1, {{MODEL_KV_WINDOWS, 0, 0, {GGUF_TYPE_Q4_0, 0}}}},
           {1, {{MODEL_KV_LAYERS, 1, 1, {GGUF_TYPE_F16, 0}}}}},
    [N_TINY] = {.k_but = {1, {{MODEL_KV_INDEXER, 0, 0, {GGUF_TYPE_F8_E4M3, 0.02f}}}}},
};

static struct fixture open_model(size_t m)
{
    struct fixture f = m < N_TINY
                           ? fixture_open(&models[m])
                           : fixture_open_bytes(sparse_model_make(&sparse_models[m - N_TINY]));
    assert_int_equal(model_round_kv(f.model, &kv_types[m], NULL), STATUS_OK);
    return f;
}

static void assert_rows_equal(const float *found, const float *expected, size_t n_rows,
                              size_t width)
{
    size_t i = compare_bits(found, expected, n_rows * width);
    if (i < n_rows * width)
        fail_msg("row %zu, column %zu: %a, expected %a", i / width, i % width, (double)found[i],
                 (double)expected[i]);
}

/** Windows of these lengths, one after the other. */
static const size_t lengths[] = {70, 33, 1, 129, 66};
enum { N_WINDOWS = sizeof lengths / sizeof lengths[0], N_TOKENS = 70 + 33 + 1 + 129 + 66 };

static struct model_batch window_batch(const int32_t *tokens,
                                       struct model_segment segments[N_WINDOWS])
{
    size_t start = 0;
    for (size_t i = 0; i < N_WINDOWS; i++) {
        segments[i] = (struct model_segment){.start = start, .n_tokens = lengths[i], .parent = -1};
        start += lengths[i];
    }
    return (struct model_batch){
        .tokens = tokens, .n_tokens = start, .segments = segments, .n_segments = N_WINDOWS};
}

/** Everything that one model's rows must not depend on but windows and prefixes. */
static void test_ways_to_run(void **state)
{
    (void)state;
    static const struct fixture_run runs[] = {{.tile_tokens = 1},    {.tile_tokens = 7},
                                              {.tile_tokens = 64},   {.tile_tokens = 71},
                                              {.tile_tokens = 4096}, {.split_layers = 1}};
    static const struct kern_cpu_options backends[] = {
        {.n_threads = 1, .isa_cap = KERN_ISA_COUNT - 1},
        {.n_threads = 4, .isa_cap = KERN_ISA_COUNT - 1},
        {.n_threads = 2, .isa_cap = KERN_ISA_SCALAR + 1},
        {.n_threads = 1, .isa_cap = KERN_ISA_SCALAR + 1},
        {.n_threads = 2, .isa_cap = KERN_ISA_SCALAR},
    };
    for (size_t m = 0; m < N_MODELS; m++) {
        struct fixture f = open_model(m);
        size_t width = model_hparams(f.model)->n_embd;
        int32_t *tokens = fixture_tokens(&f, m, N_TOKENS);
        struct model_segment segments[N_WINDOWS];
        struct model_batch batch = window_batch(tokens, segments);
        float *expected = fixture_hidden(&f, &batch, (struct fixture_run){0});
        size_t step = m < N_TINY ? 1 : 2; /* their kernels have tests of their own */
        for (size_t i = step - 1; i < sizeof runs / sizeof runs[0]; i += step) {
            float *found = fixture_hidden(&f, &batch, runs[i]);
            assert_rows_equal(found, expected, N_TOKENS, width);
            free(found);
        }
        for (size_t i = step - 1; i < sizeof backends / sizeof backends[0]; i += 3 * step - 2) {
            fixture_use_backend(&f, backends[i].n_threads, backends[i].isa_cap);
            float *found = fixture_hidden(&f, &batch, (struct fixture_run){0});
            assert_rows_equal(found, expected, N_TOKENS, width);
            free(found);
        }
        free(expected);
        free(tokens);
        fixture_close(&f);
    }
}

/** Each window alone, against all in one batch. */
static void test_windows_alone(void **state)
{
    (void)state;
    for (size_t m = 0; m < N_MODELS; m++) {
        struct fixture f = open_model(m);
        size_t width = model_hparams(f.model)->n_embd;
        int32_t *tokens = fixture_tokens(&f, m, N_TOKENS);
        struct model_segment segments[N_WINDOWS];
        struct model_batch batch = window_batch(tokens, segments);
        float *together = fixture_hidden(&f, &batch, (struct fixture_run){0});
        for (size_t i = 0; i < N_WINDOWS; i++) {
            struct model_segment alone;
            struct model_batch window =
                fixture_window(tokens + segments[i].start, lengths[i], &alone);
            float *found = fixture_hidden(&f, &window, (struct fixture_run){0});
            assert_rows_equal(found, together + segments[i].start * width, lengths[i], width);
            free(found);
        }
        free(together);
        free(tokens);
        fixture_close(&f);
    }
}

enum { PREFIX = 70, N_ENDINGS = 3, LONGEST_ENDING = 66 };
static const size_t endings[N_ENDINGS] = {30, LONGEST_ENDING, 1};

/** A prefix and its endings, which share it. */
static struct model_batch family_batch(const int32_t *tokens,
                                       struct model_segment segments[1 + N_ENDINGS])
{
    size_t n = PREFIX;
    segments[0] = (struct model_segment){.n_tokens = PREFIX, .parent = -1};
    for (size_t e = 0; e < N_ENDINGS; e++) {
        segments[1 + e] = (struct model_segment){
            .start = n, .n_tokens = endings[e], .first_position = PREFIX, .parent = 0};
        n += endings[e];
    }
    return (struct model_batch){
        .tokens = tokens, .n_tokens = n, .segments = segments, .n_segments = 1 + N_ENDINGS};
}

/** The same rows from whole sequences, prefix and one ending each, in the family's order. */
static float *evaluate_unshared(struct fixture *f, const int32_t *tokens,
                                const struct model_batch *family)
{
    size_t width = model_hparams(f->model)->n_embd;
    float *rows = malloc(family->n_tokens * width * sizeof *rows);
    assert_non_null(rows);
    for (size_t e = 0; e < N_ENDINGS; e++) {
        size_t start = family->segments[1 + e].start;
        int32_t whole[PREFIX + LONGEST_ENDING];
        memcpy(whole, tokens, PREFIX * sizeof *whole);
        memcpy(whole + PREFIX, tokens + start, endings[e] * sizeof *whole);
        struct model_segment segment;
        struct model_batch alone = fixture_window(whole, PREFIX + endings[e], &segment);
        float *hidden = fixture_hidden(f, &alone, (struct fixture_run){0});
        memcpy(rows, hidden, PREFIX * width * sizeof *rows);
        memcpy(rows + start * width, hidden + PREFIX * width, endings[e] * width * sizeof *rows);
        free(hidden);
    }
    return rows;
}

/** Shared against unshared, also where the family is longer than a tile. */
static void test_shared_prefix(void **state)
{
    (void)state;
    static const size_t tiles[] = {0, 3, 50, 80, 140};
    for (size_t m = 0; m < N_MODELS; m++) {
        struct fixture f = open_model(m);
        struct model_segment segments[1 + N_ENDINGS];
        int32_t *tokens = fixture_tokens(&f, m, N_TOKENS);
        struct model_batch batch = family_batch(tokens, segments);
        float *unshared = evaluate_unshared(&f, tokens, &batch);
        for (size_t t = 0; t < sizeof tiles / sizeof tiles[0]; t++) {
            float *shared =
                fixture_hidden(&f, &batch, (struct fixture_run){.tile_tokens = tiles[t]});
            assert_rows_equal(shared, unshared, batch.n_tokens, model_hparams(f.model)->n_embd);
            free(shared);
        }
        free(unshared);
        free(tokens);
        fixture_close(&f);
    }
}

/** The wanted rows of a family and windows after it, where others are not wanted. */
static void test_unwanted(void **state)
{
    (void)state;
    static const size_t tiles[] = {0, 3, 50, 80, 140};
    static const size_t unwanted[] = {70, 0, 40, 1, 0, 50}; /* of prefix, endings, two windows */
    enum { N_SEGMENTS = 1 + N_ENDINGS + 2, N = PREFIX + 30 + 66 + 1 + 40 + 80 };
    for (size_t m = 0; m < N_MODELS; m++) {
        struct fixture f = open_model(m);
        size_t width = model_hparams(f.model)->n_embd;
        struct model_segment segments[N_SEGMENTS];
        int32_t *tokens = fixture_tokens(&f, m, N);
        struct model_batch batch = family_batch(tokens, segments);
        for (size_t i = 1 + N_ENDINGS; i < N_SEGMENTS; i++, batch.n_segments++) {
            segments[i] = (struct model_segment){
                .start = batch.n_tokens, .n_tokens = i == N_SEGMENTS - 1 ? 80 : 40, .parent = -1};
            batch.n_tokens += segments[i].n_tokens;
        }
        float *expected = fixture_hidden(&f, &batch, (struct fixture_run){0});
        for (size_t i = 0; i < N_SEGMENTS; i++)
            segments[i].n_unwanted = unwanted[i];
        for (size_t t = 0; t < sizeof tiles / sizeof tiles[0]; t++) {
            float *found =
                fixture_hidden(&f, &batch, (struct fixture_run){.tile_tokens = tiles[t]});
            for (size_t i = 0; i < N_SEGMENTS; i++) {
                size_t first = (segments[i].start + unwanted[i]) * width;
                assert_rows_equal(found + first, expected + first,
                                  segments[i].n_tokens - unwanted[i], width);
            }
            /* The prefix's rows were left as they were, but where all are computed. */
            if (model_hparams(f.model)->layers[0].mixer == MODEL_ATTENTION)
                assert_true(compare_bits(found, expected, PREFIX * width) < PREFIX * width);
            free(found);
        }
        free(expected);
        free(tokens);
        fixture_close(&f);
    }
}

/** One of two models that run at the same time, each on a backend of its own. */
struct racer {
    struct fixture f;
    int32_t *tokens;
    struct model_segment segments[N_WINDOWS];
    struct model_batch batch;
    float *expected;
    size_t n_differences;
};

static void *race(void *user)
{
    struct racer *r = user;
    size_t n = N_TOKENS * model_hparams(r->f.model)->n_embd;
    for (int round = 0; round < 3; round++) {
        float *found = fixture_hidden(&r->f, &r->batch, (struct fixture_run){.tile_tokens = 100});
        r->n_differences += compare_bits(found, r->expected, n) < n;
        free(found);
    }
    return NULL;
}

static void test_two_at_once(void **state)
{
    (void)state;
    static struct racer racers[2];
    pthread_t threads[2];
    for (size_t i = 0; i < 2; i++) {
        struct racer *r = &racers[i];
        r->f = fixture_open(&models[i]);
        r->tokens = fixture_tokens(&r->f, i, N_TOKENS);
        r->batch = window_batch(r->tokens, r->segments);
        r->expected = fixture_hidden(&r->f, &r->batch, (struct fixture_run){0});
    }
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
    for (size_t i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(racers[i].n_differences, 0);
        free(racers[i].expected);
        free(racers[i].tokens);
        fixture_close(&racers[i].f);
    }
}

/** Rounding changes rows, and each type in its own way; a head that is no whole block is refused.
 */
static void test_rounding_is_seen(void **state)
{
    (void)state;
    static const struct model_kv_types types[] = {
        {{GGUF_TYPE_F32, 0}, {GGUF_TYPE_F32, 0}, false},
        {{GGUF_TYPE_Q4_0, 0}, {GGUF_TYPE_F32, 0}, false},
        {{GGUF_TYPE_F32, 0}, {GGUF_TYPE_Q4_0, 0}, false},
        {{GGUF_TYPE_Q4_0, 0}, {GGUF_TYPE_Q4_0, 0}, false},
        {{GGUF_TYPE_Q4_0, 0}, {GGUF_TYPE_Q4_0, 0}, true},
        {{GGUF_TYPE_Q4_1, 0}, {GGUF_TYPE_Q4_0, 0}, true},
        {.k_but = {1, {{MODEL_KV_LAYERS, 0, 0, {GGUF_TYPE_Q4_0, 0}}}}},
        {.k_but = {1, {{MODEL_KV_LAYERS, 1, UINT32_MAX, {GGUF_TYPE_Q4_0, 0}}}}},
        {.v_but = {1, {{MODEL_KV_LAYERS, 0, 0, {GGUF_TYPE_Q4_0, 0}}}}},
        {{GGUF_TYPE_MXFP8, 0}, {GGUF_TYPE_F32, 0}, false},
        {{GGUF_TYPE_F8_E4M3, 0}, {GGUF_TYPE_F32, 0}, false},
        {{GGUF_TYPE_F8_E4M3, 0.75f}, {GGUF_TYPE_F32, 0}, false},
        {{GGUF_TYPE_F32, 0}, {GGUF_TYPE_F8_E4M3, 0.75f}, false},
        {{GGUF_TYPE_F8_E4M3, 0},
         .k_but = {1, {{MODEL_KV_LAYERS, 0, 0, {GGUF_TYPE_F8_E4M3, 0.75f}}}}},
        {{GGUF_TYPE_Q4_0, 0}, .k_but = {1, {{MODEL_KV_LAYERS, 0, 0, {GGUF_TYPE_Q4_1, 0}}}}},
    };
    enum { N_TYPES = sizeof types / sizeof *types, N = 40 };
    struct fixture f = fixture_open(&models[4]);
    size_t n = N * (size_t)model_hparams(f.model)->n_embd;
    struct model_segment segment;
    int32_t *tokens = fixture_tokens(&f, 1, N);
    struct model_batch batch = fixture_window(tokens, N, &segment);
    float *rows[N_TYPES];
    for (size_t i = 0; i < N_TYPES; i++) {
        assert_int_equal(model_round_kv(f.model, &types[i], NULL), STATUS_OK);
        rows[i] = fixture_hidden(&f, &batch, (struct fixture_run){0});
        for (size_t k = 0; k < i; k++)
            assert_true(compare_bits(rows[i], rows[k], n) < n);
    }
    for (size_t i = 0; i < N_TYPES; i++)
        free(rows[i]);
    free(tokens);
    fixture_close(&f);

    struct status_why why;
    f = fixture_open(&models[0]);
    assert_int_equal(model_round_kv(f.model, &types[1], &why), STATUS_UNSUPPORTED);
    assert_non_null(strstr(why.text, "the keys of layer 0 are rows of 16 numbers, expected a "
                                     "multiple of 32, the block of Q4_0"));
    assert_int_equal(model_round_kv(f.model, &types[2], &why), STATUS_UNSUPPORTED);
    assert_non_null(strstr(why.text, "the values of layer 0"));
    assert_int_equal(model_hparams(f.model)->kv.v.type, GGUF_TYPE_F32);
    fixture_close(&f);
}

/** Types of some layers: all of them by name are the type of all, and the last one counts. */
static void test_types_of_layers(void **state)
{
    (void)state;
    enum { N = 90 }; /* longer than the window */
    static const struct model_kv_types types[][2] = {
        {{.k = {GGUF_TYPE_Q4_0, 0}},
         {.k_but = {1, {{MODEL_KV_LAYERS, 0, UINT32_MAX, {GGUF_TYPE_Q4_0, 0}}}}}},
        {{.v = {GGUF_TYPE_F16, 0}},
         {.v_but = {2,
                    {{MODEL_KV_LAYERS, 0, 0, {GGUF_TYPE_Q4_0, 0}},
                     {MODEL_KV_LAYERS, 0, UINT32_MAX, {GGUF_TYPE_F16, 0}}}}}},
        {{.k = {GGUF_TYPE_Q8_0, 0}},
         {.k_but = {1, {{MODEL_KV_WINDOWS, 0, 0, {GGUF_TYPE_Q8_0, 0}}}}}},
    };
    struct fixture f = fixture_open(&models[5]);
    size_t n = N * (size_t)model_hparams(f.model)->n_embd;
    struct model_segment segment;
    int32_t *tokens = fixture_tokens(&f, 1, N);
    struct model_batch batch = fixture_window(tokens, N, &segment);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        float *rows[2];
        for (size_t k = 0; k < 2; k++) {
            assert_int_equal(model_round_kv(f.model, &types[i][k], NULL), STATUS_OK);
            rows[k] = fixture_hidden(&f, &batch, (struct fixture_run){0});
        }
        assert_rows_equal(rows[1], rows[0], N, n / N);
        free(rows[0]);
        free(rows[1]);
    }
    free(tokens);
    struct status_why why;
    static const struct model_kv_types wrong[] = {
        {.k_but = {1, {{MODEL_KV_FULL, 0, 0, {GGUF_TYPE_F16, 0}}}}},
        {.k_but = {1, {{MODEL_KV_INDEXER, 0, 0, {GGUF_TYPE_F16, 0}}}}},
        {.v_but = {1, {{MODEL_KV_LAYERS, 0, 9, {GGUF_TYPE_F16, 0}}}}},
    };
    static const char *const says[] = {
        "a type of a cache is for layers that see all positions; expected some, found none",
        "a type of a cache is for layers that have an indexer; expected some, found none",
        "a type of a cache is for layer 9; expected one of its layers, 0 to "};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(model_round_kv(f.model, &wrong[i], &why), STATUS_USAGE);
        assert_non_null(strstr(why.text, says[i]));
    }
    fixture_close(&f);
}

/** Rows that are keys and values at once have one type, and one scale. */
static void test_compressed_rows(void **state)
{
    (void)state;
    struct fixture f = fixture_open_bytes(sparse_model_make(&sparse_models[0]));
    struct model_kv_types types = {.k = {GGUF_TYPE_F8_E4M3, 0.02f}, .v = {GGUF_TYPE_F8_E4M3, 0.5f}};
    struct status_why why;
    assert_int_equal(model_round_kv(f.model, &types, &why), STATUS_UNSUPPORTED);
    assert_non_null(strstr(why.text, "its compressed rows are keys and values at once: expected "
                                     "one type for both, or the keys' alone; found F8_E4M3@0.02 "
                                     "and F8_E4M3@0.5"));
    types.v.scale = types.k.scale;
    assert_int_equal(model_round_kv(f.model, &types, &why), STATUS_OK);
    types = (struct model_kv_types){.k = {GGUF_TYPE_FP8_DS_MLA, 0}};
    assert_int_equal(model_round_kv(f.model, &types, &why), STATUS_UNSUPPORTED);
    assert_non_null(strstr(why.text, "the compressed keys of layer 0 are rows of 8 numbers, "
                                     "expected a multiple of 128, the block of FP8_DS_MLA"));
    types = (struct model_kv_types){
        .k_but = {1, {{MODEL_KV_INDEXER, 0, 0, {GGUF_TYPE_FP8_DS_MLA, 0}}}}};
    assert_int_equal(model_round_kv(f.model, &types, &why), STATUS_UNSUPPORTED);
    assert_non_null(strstr(why.text, "expected another one for an indexer's keys"));
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ways_to_run),     cmocka_unit_test(test_windows_alone),
        cmocka_unit_test(test_shared_prefix),   cmocka_unit_test(test_unwanted),
        cmocka_unit_test(test_two_at_once),     cmocka_unit_test(test_rounding_is_seen),
        cmocka_unit_test(test_types_of_layers), cmocka_unit_test(test_compressed_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
