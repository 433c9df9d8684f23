/*
 * Replacing a tensor's bytes: the model is then the one whose file has them. Every tensor of a
 * model is replaced by that of another, one after the other, with other types.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/harness/compare.h"
#include "tests/model/fixture.h"
#include "tests/model/replace.h"

enum { N = 80 };

/** Both ends of the pass: hidden rows and log-probabilities of the next tokens. */
struct outcome {
    float *hidden;
    double *log_probs;
};

static struct outcome run(struct fixture *f, const int32_t *tokens)
{
    struct model_segment segment;
    struct model_batch batch = fixture_window(tokens, N, &segment);
    float *hidden = fixture_hidden(f, &batch, (struct fixture_run){0});
    return (struct outcome){hidden, fixture_log_probs(f, hidden, tokens, N)};
}

static bool same(const struct fixture *f, const struct outcome *a, const struct outcome *b)
{
    size_t n = N * model_hparams(f->model)->n_embd;
    return compare_bits(a->hidden, b->hidden, n) == n &&
           memcmp(a->log_probs, b->log_probs, N * sizeof *a->log_probs) == 0;
}

static void free_outcome(struct outcome *o)
{
    free(o->hidden);
    free(o->log_probs);
}

static bool has_effect(const char *name)
{
    return strstr(name, "input_scale") == NULL;
}

/** Turn the model of `from` into that of `to`, tensor by tensor; each must change something. */
static void turn_into(const struct tiny_model_options *from, const struct tiny_model_options *to)
{
    struct fixture f = fixture_open(from);
    struct fixture g = fixture_open(to);
    int32_t *tokens = fixture_tokens(&f, 1, N);
    struct outcome before = run(&f, tokens);
    struct outcome wanted = run(&g, tokens);
    assert_false(same(&f, &before, &wanted));
    const struct gguf_file *file = model_file(g.model);
    for (size_t i = 0; i < gguf_n_tensors(file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(file, i);
        struct status_why why = {0};
        if (replace_weight(f.model, t->name, t->type->type, t->data, &why) != STATUS_OK)
            fail_msg("%s", why.text);
        struct outcome after = run(&f, tokens);
        if (same(&f, &before, &after) == has_effect(t->name))
            fail_msg("replacing %s had %s effect", t->name, has_effect(t->name) ? "no" : "an");
        free_outcome(&before);
        before = after;
    }
    assert_true(same(&f, &before, &wanted));
    free_outcome(&before);
    free_outcome(&wanted);
    free(tokens);
    fixture_close(&f);
    fixture_close(&g);
}

static void test_every_tensor(void **state)
{
    (void)state;
    turn_into(&(struct tiny_model_options){.seed = 1, .rope_factors = true, .biases = true},
              &(struct tiny_model_options){
                  .seed = 2, .rope_factors = true, .biases = true, .type = GGUF_TYPE_Q8_0});
    turn_into(
        &(struct tiny_model_options){
            .seed = 3, .fused_qkv = true, .tied_head = true, .scales = true},
        &(struct tiny_model_options){.seed = 4,
                                     .fused_qkv = true,
                                     .tied_head = true,
                                     .scales = true,
                                     .type = GGUF_TYPE_BF16});
    turn_into(
        &(struct tiny_model_options){
            .seed = 5, .n_experts = 3, .n_experts_used = 2, .type = GGUF_TYPE_Q4_0},
        &(struct tiny_model_options){.seed = 6, .n_experts = 3, .n_experts_used = 2});
}

/** A session that is open while rope factors are replaced uses the new ones. */
static void test_open_session(void **state)
{
    (void)state;
    struct tiny_model_options o = {.seed = 1, .rope_factors = true};
    struct fixture f = fixture_open(&o);
    size_t width = model_hparams(f.model)->n_embd;
    size_t n_bytes = N * width * sizeof(float);
    int32_t *tokens = fixture_tokens(&f, 1, N);
    struct model_segment segment;
    struct model_batch batch = fixture_window(tokens, N, &segment);
    struct model_session_options options = {.max_batch = N, .max_segment = N};
    struct model_session *session;
    void *x;
    float *found = malloc(n_bytes);
    assert_int_equal(model_session_open(&session, f.model, f.backend, &options, NULL), STATUS_OK);
    assert_int_equal(kern_alloc(f.backend, &x, n_bytes, NULL), STATUS_OK);
    const float factors[8] = {1, 1, 2, 2, 3, 4, 5, 6};
    for (int round = 0; round < 2; round++) {
        if (round == 1)
            assert_int_equal(
                replace_weight(f.model, "rope_freqs.weight", GGUF_TYPE_F32, factors, NULL),
                STATUS_OK);
        assert_int_equal(model_embed(session, &batch, x, NULL), STATUS_OK);
        assert_int_equal(model_forward(session, &batch, 0, 2, x, NULL), STATUS_OK);
        uint32_t rows[N];
        for (uint32_t i = 0; i < N; i++)
            rows[i] = i;
        void *hidden;
        assert_int_equal(kern_alloc(f.backend, &hidden, n_bytes, NULL), STATUS_OK);
        assert_int_equal(model_hidden(session, x, rows, N, hidden, NULL), STATUS_OK);
        assert_int_equal(kern_download(f.backend, found, hidden, n_bytes, NULL), STATUS_OK);
        kern_free(f.backend, hidden);
        float *expected = fixture_hidden(&f, &batch, (struct fixture_run){0});
        assert_int_equal(compare_bits(found, expected, N * width), N * width);
        free(expected);
    }
    free(found);
    free(tokens);
    kern_free(f.backend, x);
    model_session_close(session);
    fixture_close(&f);
}

static void test_refusals(void **state)
{
    (void)state;
    struct tiny_model_options o = {.seed = 1, .rope_factors = true, .n_embd = 96, .n_heads = 6};
    struct fixture f = fixture_open(&o);
    int32_t *tokens = fixture_tokens(&f, 1, N);
    struct outcome before = run(&f, tokens);
    static const uint8_t bytes[1 << 20];
    const float zero_factors[8] = {1, 1, 1, 0, 1, 1, 1, 1};
    const float infinite_factors[8] = {1, INFINITY, 1, 1, 1, 1, 1, 1};
    const struct {
        const char *name;
        enum gguf_type type;
        const void *data;
        enum status status;
        const char *says;
    } cases[] = {
        {"blk.0.attn_x.weight", GGUF_TYPE_F32, bytes, STATUS_USAGE,
         "tiny.gguf: there is no tensor 'blk.0.attn_x.weight' to replace"},
        {"blk.0.attn_q.weight", GGUF_TYPE_Q4_K, bytes, STATUS_USAGE,
         "tensor 'blk.0.attn_q.weight' has rows of 96, type Q4_K needs a multiple of 256"},
        {"blk.0.attn_q.weight", (enum gguf_type)15, bytes, STATUS_UNSUPPORTED,
         "type 15 for tensor 'blk.0.attn_q.weight' cannot be decoded"},
        {"rope_freqs.weight", GGUF_TYPE_F16, bytes, STATUS_FORMAT,
         "tiny.gguf: tensor 'rope_freqs.weight' has type F16, expected F32"},
        {"rope_freqs.weight", GGUF_TYPE_F32, zero_factors, STATUS_FORMAT,
         "tiny.gguf: element 3 of tensor 'rope_freqs.weight' is 0, expected more than 0"},
        {"rope_freqs.weight", GGUF_TYPE_F32, infinite_factors, STATUS_FORMAT,
         "tiny.gguf: element 1 of tensor 'rope_freqs.weight' is inf, expected a finite number"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct status_why why = {0};
        assert_int_equal(replace_weight(f.model, cases[i].name, cases[i].type, cases[i].data, &why),
                         cases[i].status);
        assert_string_equal(why.text, cases[i].says);
        struct outcome after = run(&f, tokens);
        assert_true(same(&f, &before, &after));
        free_outcome(&after);
    }
    free_outcome(&before);
    free(tokens);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_tensor),
        cmocka_unit_test(test_open_session),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
