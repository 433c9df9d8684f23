/*
 * Traces: what is shown is what the forward pass computes, to the bit, and showing changes no bit;
 * expected errors have the size of the roundings that they stand for; distances of made-up errors
 * are those errors.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clients/trace/compare.h"
#include "clients/trace/rounded.h"
#include "clients/trace/trace.h"
#include "tests/harness/cmocka.h"
#include "tests/model/fixture.h"

enum { N_TOKENS = 24 };

static struct fixture f;
static struct trace trace;
static int32_t *tokens;
static struct status_why why;

static void open_trace(const struct tiny_model_options *options, size_t n_passes)
{
    f = fixture_open(options);
    tokens = fixture_tokens(&f, 7, N_TOKENS);
    struct trace_task task = {.model = f.model,
                              .backend = f.backend,
                              .tokens = tokens,
                              .n_tokens = N_TOKENS,
                              .n_logits = 2,
                              .n_passes = n_passes};
    assert_int_equal(trace_run(&trace, &task, &why), STATUS_OK);
}

static void close_trace(void)
{
    trace_free(&trace);
    free(tokens);
    fixture_close(&f);
}

static const struct trace_tensor *tensor_of(enum model_place place, int layer)
{
    const struct trace_tensor *t = trace_find(&trace, place, layer);
    assert_non_null(t);
    return t;
}

/** The same pass without a trace, and in other tiles. */
static void shows_what_is_computed(void **state)
{
    (void)state;
    static const struct tiny_model_options models[] = {
        {.seed = 1},
        {.seed = 2, .biases = true, .fused_qkv = true, .tied_head = true},
        {.seed = 3, .n_experts = 5, .n_experts_used = 2},
        {.seed = 4, .type = GGUF_TYPE_Q8_0, .n_ff = 64, .vary_layers = true},
    };
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        open_trace(&models[i], 2);
        struct model_segment segment;
        struct model_batch batch = fixture_window(tokens, N_TOKENS, &segment);
        fixture_use_backend(&f, 2, KERN_ISA_COUNT - 1);
        float *hidden = fixture_hidden(&f, &batch, (struct fixture_run){.tile_tokens = 5});
        const struct trace_tensor *t = tensor_of(MODEL_AT_OUTPUT_NORM, -1);
        assert_int_equal(t->n_rows, N_TOKENS);
        assert_memory_equal(t->values, hidden, t->n_rows * t->size * sizeof *hidden);
        free(hidden);
        close_trace();
    }
}

/** A residual is what was there and what the branch made. Norms, shapes, order of places. */
static void places_fit_together(void **state)
{
    (void)state;
    open_trace(&(struct tiny_model_options){.seed = 5}, 0);
    const float *x = tensor_of(MODEL_AT_EMBEDDING, -1)->values;
    for (int layer = 0; layer < 2; layer++) {
        const struct trace_tensor *out = tensor_of(MODEL_AT_ATTN_OUT, layer);
        const float *residual = tensor_of(MODEL_AT_ATTN_RESIDUAL, layer)->values;
        const float *ffn = tensor_of(MODEL_AT_FFN_OUT, layer)->values;
        const float *end = tensor_of(MODEL_AT_LAYER_OUT, layer)->values;
        for (size_t i = 0; i < out->n_rows * out->size; i++) {
            assert_true(residual[i] == out->values[i] + x[i]);
            assert_true(end[i] == ffn[i] + residual[i]);
        }
        x = end;
        const struct trace_tensor *k = tensor_of(MODEL_AT_K_ROTATED, layer);
        assert_int_equal(k->n_heads, 2);
        assert_int_equal(k->size, 16);
        /* Position 0 is not turned. */
        assert_memory_equal(k->values, tensor_of(MODEL_AT_K_PROJECTED, layer)->values,
                            k->n_heads * k->size * sizeof(float));
    }
    assert_int_equal(tensor_of(MODEL_AT_LOGITS, -1)->n_rows, 2);
    assert_ptr_equal(&trace.items[0], tensor_of(MODEL_AT_EMBEDDING, -1));
    assert_ptr_equal(&trace.items[trace.n - 1], tensor_of(MODEL_AT_LOGITS, -1));
    close_trace();
}

/** Each expert's rows are in the slot of the token that chose it. */
static void experts_are_in_their_slots(void **state)
{
    (void)state;
    open_trace(&(struct tiny_model_options){.seed = 6, .n_experts = 6, .n_experts_used = 3}, 0);
    const struct trace_tensor *chosen = tensor_of(MODEL_AT_EXPERTS, 1);
    const struct trace_tensor *out = tensor_of(MODEL_AT_EXPERT_OUT, 1);
    const struct trace_tensor *shares = tensor_of(MODEL_AT_SHARES, 1);
    const float *before = tensor_of(MODEL_AT_ATTN_RESIDUAL, 1)->values;
    const float *after = tensor_of(MODEL_AT_LAYER_OUT, 1)->values;
    assert_int_equal(out->n_heads, 3);
    for (size_t t = 0; t < N_TOKENS; t++) {
        assert_true(chosen->values[3 * t] != chosen->values[3 * t + 1]);
        for (size_t i = 0; i < out->size; i++) {
            double sum = (double)before[t * out->size + i];
            for (size_t slot = 0; slot < 3; slot++)
                sum += (double)shares->values[3 * t + slot] *
                       (double)out->values[(3 * t + slot) * out->size + i];
            assert_true(fabs(sum - (double)after[t * out->size + i]) < 1e-5);
        }
    }
    close_trace();
}

/** The share of a tensor's RMS that is expected as an error. */
static double relative_error(enum model_place place, int layer)
{
    const struct trace_tensor *t = tensor_of(place, layer);
    double n = (double)(t->n_rows * t->n_heads * t->size);
    double rms = trace_tensor_figures(t, t->n_rows).norm / sqrt(n);
    return sqrt(t->mean_squares / (double)(t->size * trace.n_passes)) / rms;
}

/** What a type's rounding is expected to cost: float32 1e-7, F16 2e-4, 8 bits 5e-3. */
static void errors_have_their_size(void **state)
{
    (void)state;
    static const struct {
        enum gguf_type type;
        double least, most;
    } types[] = {
        {GGUF_TYPE_F32, 3e-8, 1e-6},
        {GGUF_TYPE_F16, 1e-4, 5e-4},
        {GGUF_TYPE_BF16, 1e-3, 4e-3},
        {GGUF_TYPE_Q8_0, 3e-3, 1.5e-2},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        open_trace(&(struct tiny_model_options){.seed = 8, .type = types[i].type}, 4);
        double error = relative_error(MODEL_AT_Q_PROJECTED, 0);
        assert_true(error > types[i].least && error < types[i].most);
        assert_true(relative_error(MODEL_AT_EMBEDDING, -1) < 2e-7);
        assert_true(relative_error(MODEL_AT_ATTENTION, 0) > 1e-4); /* the cache is F16 */
        close_trace();
    }
}

/** A record of a tensor with errors of a known size: these are the distance. */
static void distances_are_errors(void **state)
{
    (void)state;
    open_trace(&(struct tiny_model_options){.seed = 9, .type = GGUF_TYPE_F16}, 8);
    const struct trace_tensor *t = tensor_of(MODEL_AT_K_ROTATED, 1);
    size_t width = t->n_heads * t->size, n = t->n_rows * width;
    float *values = malloc(n * sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < n; i++) { /* head 1, from position 10 on */
        size_t row = i / width, head = i / t->size % t->n_heads;
        double error = trace_tensor_error(&trace, t, row, head);
        double size = row >= 10 && head == 1 ? 20 : 0.5;
        values[i] = (float)((double)t->values[i] + (i % 2 ? size : -size) * error);
    }
    struct trace_record record = {.name = "Kcur",
                                  .op = "ROPE",
                                  .layer = 1,
                                  .ne = {t->size, t->n_heads, t->n_rows, 1},
                                  .whole = true,
                                  .type = TRACE_NUMBER_F32,
                                  .n_values = n};
    struct trace_file file = {.text = {.data = (char *)values, .n_bytes = n * sizeof *values},
                              .records = &record,
                              .n = 1};
    struct trace_distances d;
    const struct trace_limits limits = {4, 8, 8};
    assert_int_equal(trace_compare(&d, &trace, &file, "llama", &limits, &why), STATUS_OK);
    assert_int_equal(d.n, 1);
    assert_true(d.items[0].departs && d.first_departure == 0);
    assert_int_equal(d.items[0].first_row, 10);
    assert_int_equal(d.items[0].n_rows_off, N_TOKENS - 10);
    assert_int_equal(d.items[0].first_head, 1);
    assert_int_equal(d.items[0].n_heads_off, 1);
    assert_true(fabs(d.items[0].most - 20) < 0.1);
    trace_distances_free(&d);

    record.layer = 7; /* none of the model's */
    assert_int_equal(trace_compare(&d, &trace, &file, "llama", &limits, &why), STATUS_FORMAT);
    trace_distances_free(&d);
    free(values);
    close_trace();
}

/** The choice of another expert is excused by a near tie, and by nothing else. */
static void ties_excuse_other_experts(void **state)
{
    (void)state;
    open_trace(&(struct tiny_model_options){.seed = 10, .n_experts = 6, .n_experts_used = 2}, 4);
    const struct trace_tensor *t = tensor_of(MODEL_AT_EXPERTS, 0);
    const struct trace_tensor *router = tensor_of(MODEL_AT_ROUTER, 0);
    float values[2 * N_TOKENS];
    memcpy(values, t->values, sizeof values);
    size_t other = 0; /* an expert that token 5 did not choose */
    while ((float)other == values[10] || (float)other == values[11])
        other++;
    struct trace_record record = {.name = "ffn_moe_topk",
                                  .op = "VIEW",
                                  .ne = {2, N_TOKENS, 1, 1},
                                  .whole = true,
                                  .type = TRACE_NUMBER_F32,
                                  .n_values = 2 * N_TOKENS};
    struct trace_file file = {
        .text = {.data = (char *)values, .n_bytes = sizeof values}, .records = &record, .n = 1};
    const struct trace_limits limits = {4, 8, 8};
    for (int tied = 0; tied < 2; tied++) {
        size_t own = (size_t)t->values[11];
        values[11] = (float)other;
        if (tied) /* by hand */
            router->values[5 * 6 + other] = router->values[5 * 6 + own];
        struct trace_distances d;
        assert_int_equal(trace_compare(&d, &trace, &file, "llama", &limits, &why), STATUS_OK);
        assert_int_equal(d.items[0].n_other_experts, 1);
        assert_int_equal(d.items[0].n_wrong_experts, !tied);
        assert_int_equal(d.items[0].departs, !tied);
        assert_int_equal(d.n_diverged > 0, tied);
        trace_distances_free(&d);
    }
    close_trace();
}

/** Which values a log prints, by index. */
static void printed_values_have_their_index(void **state)
{
    (void)state;
    struct trace_record record = {.ne = {8, 3, 7, 2}};
    assert_int_equal(trace_record_index(&record, 0), 0);
    assert_int_equal(trace_record_index(&record, 2), 2);
    assert_int_equal(trace_record_index(&record, 3), 5);
    assert_int_equal(trace_record_index(&record, 6), 8);
    assert_int_equal(trace_record_index(&record, 18 * 3), 4 * 24);
    assert_int_equal(trace_record_index(&record, 18 * 6), 7 * 24);
    assert_int_equal(trace_record_index(&record, 18 * 12 - 1), 8 * 3 * 7 * 2 - 1);
}

/** A backend that has rounded is exact again. */
static void rounding_ends(void **state)
{
    (void)state;
    open_trace(&(struct tiny_model_options){.seed = 11}, 3);
    struct trace first = trace;
    trace = (struct trace){0};
    struct trace_task task = {
        .model = f.model, .backend = f.backend, .tokens = tokens, .n_tokens = N_TOKENS};
    assert_int_equal(trace_run(&trace, &task, &why), STATUS_OK);
    const struct trace_tensor *t = tensor_of(MODEL_AT_LAYER_OUT, 1);
    const struct trace_tensor *u = trace_find(&first, MODEL_AT_LAYER_OUT, 1);
    assert_memory_equal(t->values, u->values, t->n_rows * t->size * sizeof(float));
    assert_true(u->mean_squares > 0 && t->mean_squares == 0);
    trace_free(&first);
    close_trace();
}

static double expected_of(enum trace_arithmetic arithmetic)
{
    struct trace_task task = {.model = f.model,
                              .backend = f.backend,
                              .tokens = tokens,
                              .n_tokens = N_TOKENS,
                              .n_passes = 3,
                              .arithmetic = arithmetic};
    trace_free(&trace);
    assert_int_equal(trace_run(&trace, &task, &why), STATUS_OK);
    return sqrt(tensor_of(MODEL_AT_LAYER_OUT, 1)->mean_squares);
}

/** float32 has 13 bits more than the halves of llama.cpp's attention, bfloat16 three fewer. */
static void arithmetic_says_what_to_expect(void **state)
{
    (void)state;
    open_trace(&(struct tiny_model_options){.seed = 11}, 0);
    double llama = expected_of(TRACE_AS_LLAMA), fine = expected_of(TRACE_FLOAT32);
    double brain = expected_of(TRACE_BFLOAT16);
    print_message("llama %.1e, float32 %.1e, bfloat16 %.1e\n", llama, fine, brain);
    assert_true(fine > 0 && llama > 50 * fine && brain > 4 * llama);
    close_trace();
}

/** Every place has a name and a meaning, and is found under it. */
static void places_have_names(void **state)
{
    (void)state;
    for (int i = 0; i < MODEL_N_PLACES; i++) {
        enum model_place place = (enum model_place)i;
        assert_non_null(trace_place_meaning(place));
        assert_non_null(trace_place_name(place));
    }
    assert_true(trace_place_match(MODEL_AT_Q_ROTATED, "llama", "Qcur", "ROPE"));
    assert_true(trace_place_match(MODEL_AT_Q_ROTATED, "llama", "Qcur", NULL));
    assert_false(trace_place_match(MODEL_AT_Q_ROTATED, "llama", "Qcur", "MUL_MAT"));
    assert_true(trace_place_match(MODEL_AT_ATTN_RESIDUAL, "gemma4", "attn_out", "ADD"));
    assert_true(trace_place_match(MODEL_AT_FFN_OUT, "gemma4", "ffn_down_s", "MUL"));
    assert_true(trace_place_match(MODEL_AT_Q_WIDE, "deepseek2", "Qcur_attn_temp_scaled", "MUL"));
    assert_true(trace_place_match(MODEL_AT_ATTN_OUT, "qwen35moe", "linear_attn_out", "MUL"));
    assert_false(trace_place_match(MODEL_AT_ATTN_RESIDUAL, "llama", "attn_out", "ADD"));
    /* What gates of heads multiply is called as what others make of it. */
    assert_true(trace_place_match(MODEL_AT_ATTENTION, "laguna", "attn_out", "RESHAPE"));
    assert_false(trace_place_match(MODEL_AT_ATTN_OUT, "laguna", "attn_out", NULL));
    assert_false(trace_place_match(MODEL_AT_ATTENTION, "llama", "attn_out", NULL));
    assert_true(trace_place_match(MODEL_AT_ATTN_OUT, "afmoe", "attn_o_proj", "MUL_MAT"));
    assert_true(trace_place_match(MODEL_AT_ATTN_GATE, "step35", "attn_gate", "MUL_MAT"));
    assert_false(trace_place_match(MODEL_AT_FFN_UP, "phi3", "ffn_up", "MUL_MAT"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shows_what_is_computed),
        cmocka_unit_test(places_fit_together),
        cmocka_unit_test(experts_are_in_their_slots),
        cmocka_unit_test(errors_have_their_size),
        cmocka_unit_test(distances_are_errors),
        cmocka_unit_test(ties_excuse_other_experts),
        cmocka_unit_test(printed_values_have_their_index),
        cmocka_unit_test(rounding_ends),
        cmocka_unit_test(arithmetic_says_what_to_expect),
        cmocka_unit_test(places_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
