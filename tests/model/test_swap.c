/*
 * Swapping tensors: the model is then the one whose file has them. Every tensor of a model is
 * taken from another, one after the other, with other types, and given back.
 * With arguments "A.gguf B.gguf ..." pairs of such models come from files.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "kernels/backend.h"
#include "model/swap.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/compare.h"
#include "tests/model/fixture.h"

enum { N = 80 };

/** The residual stream after each layer, and both ends of the pass: hidden rows and
 * log-probabilities of the next tokens. All of a session that stays open. */
struct outcome {
    float *x; /* [L, N, D] */
    float *hidden;
    double *log_probs;
};

/** A model with a session that is open all the time. */
struct scene {
    struct fixture *f;
    struct model_session *session;
    float *x, *hidden;
    const int32_t *tokens;
};

static struct scene scene_open(struct fixture *f, const int32_t *tokens)
{
    struct scene s = {.f = f, .tokens = tokens};
    struct model_session_options options = {.max_batch = N, .max_segment = N};
    size_t n_bytes = N * model_residual_width(model_hparams(f->model)) * sizeof(float);
    void *x, *hidden;
    assert_int_equal(model_session_open(&s.session, f->model, f->backend, &options, NULL), 0);
    assert_int_equal(kern_alloc(f->backend, &x, n_bytes, NULL), 0);
    assert_int_equal(kern_alloc(f->backend, &hidden, n_bytes, NULL), 0);
    s.x = x;
    s.hidden = hidden;
    return s;
}

static void scene_close(struct scene *s)
{
    kern_free(s->f->backend, s->x);
    kern_free(s->f->backend, s->hidden);
    model_session_close(s->session);
}

static struct outcome run(const struct scene *s)
{
    const struct model_hparams *h = model_hparams(s->f->model);
    struct kern_backend *b = s->f->backend;
    size_t n = N * model_residual_width(h), n_bytes = n * sizeof(float);
    size_t hidden_bytes = N * h->n_embd * sizeof(float);
    struct model_segment segment;
    struct model_batch batch = fixture_window(s->tokens, N, &segment);
    uint32_t rows[N];
    for (uint32_t i = 0; i < N; i++)
        rows[i] = i;
    struct outcome o = {malloc(h->n_layers * n_bytes), malloc(hidden_bytes), NULL};
    assert_int_equal(model_embed(s->session, &batch, s->x, NULL), 0);
    for (size_t i = 0; i < h->n_layers; i++) {
        assert_int_equal(kern_download(b, o.x + i * n, s->x, n_bytes, NULL), 0);
        assert_int_equal(model_forward(s->session, &batch, i, i + 1, s->x, NULL), 0);
    }
    assert_int_equal(model_hidden(s->session, s->x, rows, N, s->hidden, NULL), 0);
    assert_int_equal(kern_download(b, o.hidden, s->hidden, hidden_bytes, NULL), 0);
    o.log_probs = fixture_log_probs(s->f, o.hidden, s->tokens, N);
    return o;
}

static bool same(const struct scene *s, const struct outcome *a, const struct outcome *b)
{
    size_t n = N * model_hparams(s->f->model)->n_embd;
    return compare_bits(a->hidden, b->hidden, n) == n &&
           memcmp(a->log_probs, b->log_probs, N * sizeof *a->log_probs) == 0;
}

/** Rows that enter the layers up to the stage are those of before. */
static bool same_below(const struct scene *s, const struct outcome *a, const struct outcome *b,
                       size_t stage)
{
    const struct model_hparams *h = model_hparams(s->f->model);
    size_t n = N * model_residual_width(h) * (stage < h->n_layers ? stage + 1 : h->n_layers);
    return stage == 0 || compare_bits(a->x, b->x, n) == n;
}

static void free_outcome(struct outcome *o)
{
    free(o->x);
    free(o->hidden);
    free(o->log_probs);
}

/** Whether other bytes must show. */
static bool has_effect(const char *name)
{
    return strstr(name, "input_scale") == NULL;
}

static void swap(struct model *m, const char *name, const struct gguf_file *file,
                 const struct gguf_tensor *from)
{
    struct status_why why = {0};
    if (model_swap(m, name, file, from, &why))
        fail_msg("%s: %s", name, why.text);
}

/** Turn f's model into g's, tensor by tensor, and back. strict: each must change something. */
static void turn_into(struct fixture *f, struct fixture *g, bool strict)
{
    int32_t *tokens = fixture_tokens(f, 1, N);
    struct scene s = scene_open(f, tokens), other = scene_open(g, tokens);
    struct outcome first = run(&s), before = run(&s), wanted = run(&other);
    assert_false(same(&s, &before, &wanted));
    const struct gguf_file *file = model_file(g->model);
    uint64_t *mark = malloc(gguf_n_tensors(file) * sizeof *mark);
    model_swap_mark(f->model, mark);
    size_t lowest = model_hparams(f->model)->n_layers;
    assert_int_equal(model_swap_stage_since(f->model, mark), lowest);
    for (size_t i = 0; i < gguf_n_tensors(file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(file, i);
        swap(f->model, t->name, file, t);
        struct outcome after = run(&s);
        lowest = base_min(lowest, model_swap_stage(f->model, t->name));
        assert_int_equal(model_swap_stage_since(f->model, mark), lowest);
        if (strict && same(&s, &before, &after) == has_effect(t->name))
            fail_msg("swapping %s had %s effect", t->name, has_effect(t->name) ? "no" : "an");
        if (!same_below(&s, &before, &after, model_swap_stage(f->model, t->name)))
            fail_msg("swapping %s shows below layer %zu", t->name,
                     model_swap_stage(f->model, t->name));
        free_outcome(&before);
        before = after;
    }
    assert_true(same(&s, &before, &wanted));
    for (size_t i = gguf_n_tensors(file); i > 0; i--)
        swap(f->model, gguf_tensor_at(file, i - 1)->name, NULL, NULL);
    assert_int_equal(model_swap_stage_since(f->model, mark), model_hparams(f->model)->n_layers);
    free(mark);
    free_outcome(&before);
    before = run(&s);
    assert_true(same(&s, &before, &first));
    free_outcome(&first);
    free_outcome(&before);
    free_outcome(&wanted);
    scene_close(&s);
    scene_close(&other);
    free(tokens);
}

static void turn_tiny(const struct tiny_model_options *from, const struct tiny_model_options *to)
{
    struct fixture f = fixture_open(from), g = fixture_open(to);
    turn_into(&f, &g, true);
    fixture_close(&f);
    fixture_close(&g);
}

static void test_every_tensor(void **state)
{
    (void)state;
    turn_tiny(&(struct tiny_model_options){.seed = 1, .rope_factors = true, .biases = true},
              &(struct tiny_model_options){
                  .seed = 2, .rope_factors = true, .biases = true, .type = GGUF_TYPE_Q8_0});
    turn_tiny(
        &(struct tiny_model_options){
            .seed = 3, .fused_qkv = true, .tied_head = true, .scales = true},
        &(struct tiny_model_options){.seed = 4,
                                     .fused_qkv = true,
                                     .tied_head = true,
                                     .scales = true,
                                     .type = GGUF_TYPE_BF16});
    turn_tiny(
        &(struct tiny_model_options){
            .seed = 5, .n_experts = 3, .n_experts_used = 2, .type = GGUF_TYPE_Q4_0},
        &(struct tiny_model_options){.seed = 6, .n_experts = 3, .n_experts_used = 2});
}

/** A shared model begins with what the other used; a swap in it leaves the other as it is. */
static void test_shared(void **state)
{
    (void)state;
    struct tiny_model_options o = {.seed = 1, .rope_factors = true}, p = {.seed = 2};
    struct fixture f = fixture_open(&o), g = fixture_open(&p), shared = f;
    const struct gguf_file *file = model_file(g.model);
    int32_t *tokens = fixture_tokens(&f, 1, N);
    struct scene s = scene_open(&f, tokens);
    swap(f.model, "blk.1.ffn_up.weight", file, gguf_tensor_find(file, "blk.1.ffn_up.weight"));
    assert_int_equal(model_share(&shared.model, f.model, NULL), 0);
    struct scene t = scene_open(&shared, tokens);
    struct outcome first = run(&s), same_yet = run(&t);
    assert_true(same(&s, &first, &same_yet));
    swap(shared.model, "blk.0.ffn_up.weight", file, gguf_tensor_find(file, "blk.0.ffn_up.weight"));
    struct outcome after = run(&s), other = run(&t);
    assert_true(same(&s, &first, &after));
    assert_false(same(&s, &first, &other));
    struct outcome *const all[] = {&first, &same_yet, &after, &other};
    for (size_t i = 0; i < 4; i++)
        free_outcome(all[i]);
    scene_close(&t);
    scene_close(&s);
    model_close(shared.model);
    free(tokens);
    fixture_close(&f);
    fixture_close(&g);
}

static void test_stages(void **state)
{
    (void)state;
    struct tiny_model_options o = {.seed = 1, .rope_factors = true, .n_layers = 3};
    struct fixture f = fixture_open(&o);
    static const struct {
        const char *name;
        size_t stage;
    } cases[] = {
        {"token_embd.weight", 0},   {"rope_freqs.weight", 0},   {"blk.0.attn_q.weight", 0},
        {"blk.1.attn_q.weight", 1}, {"blk.2.ffn_up.weight", 2}, {"blk.10.ffn_up.weight", 3},
        {"output_norm.weight", 3},  {"output.weight", 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(model_swap_stage(f.model, cases[i].name), cases[i].stage);
    fixture_close(&f);
}

/** A tensor that is none of a file: its shape or values are changed. */
struct refusal {
    const char *name;
    uint64_t rows; /* 0: as they are */
    enum gguf_type type;
    const void *data; /* NULL: as they are */
    enum status status;
    const char *says;
};

static void refuse(struct fixture *f, const struct scene *s, const struct refusal *r)
{
    struct outcome before = run(s);
    struct status_why why = {0};
    const struct gguf_tensor *own = gguf_tensor_find(model_file(f->model), r->name);
    struct gguf_tensor from = own ? *own : (struct gguf_tensor){.name = r->name};
    from.type_id = (uint32_t)r->type;
    from.type = gguf_type_listed(from.type_id);
    from.ne[1] = r->rows ? r->rows : from.ne[1];
    from.data = r->data ? r->data : from.data;
    assert_int_equal(model_swap(f->model, r->name, model_file(f->model), &from, &why), r->status);
    assert_string_equal(why.text, r->says);
    struct outcome after = run(s);
    assert_true(same(s, &before, &after));
    free_outcome(&before);
    free_outcome(&after);
}

static void test_refusals(void **state)
{
    (void)state;
    struct tiny_model_options o = {.seed = 1, .rope_factors = true, .n_embd = 96, .n_heads = 6};
    struct fixture f = fixture_open(&o);
    int32_t *tokens = fixture_tokens(&f, 1, N);
    struct scene s = scene_open(&f, tokens);
    const float zero_factors[8] = {1, 1, 1, 0, 1, 1, 1, 1};
    const float infinite_factors[8] = {1, INFINITY, 1, 1, 1, 1, 1, 1};
    const struct refusal cases[] = {
        {"blk.0.attn_x.weight", 0, GGUF_TYPE_F32, NULL, STATUS_USAGE,
         "tiny.gguf has no such tensor"},
        {"blk.0.attn_q.weight", 95, GGUF_TYPE_F32, NULL, STATUS_FORMAT,
         "it has shape [96, 95], expected [96, 96]"},
        {"blk.0.attn_q.weight", 0, (enum gguf_type)15, NULL, STATUS_FORMAT,
         "it has type Q8_K, which cannot be evaluated"},
        {"rope_freqs.weight", 0, GGUF_TYPE_F16, NULL, STATUS_FORMAT,
         "tiny.gguf: tensor 'rope_freqs.weight' has type F16, expected F32"},
        {"rope_freqs.weight", 0, GGUF_TYPE_F32, zero_factors, STATUS_FORMAT,
         "tiny.gguf: element 3 of tensor 'rope_freqs.weight' is 0, expected more than 0"},
        {"rope_freqs.weight", 0, GGUF_TYPE_F32, infinite_factors, STATUS_FORMAT,
         "tiny.gguf: element 1 of tensor 'rope_freqs.weight' is inf, expected a finite number"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        refuse(&f, &s, &cases[i]);
    scene_close(&s);
    free(tokens);
    fixture_close(&f);
}

static int turn_files(int n, char **paths)
{
    for (int i = 0; i + 1 < n; i += 2) {
        struct fixture f = fixture_open_file(paths[i], &(struct model_options){0});
        struct fixture g = fixture_open_file(paths[i + 1], &(struct model_options){0});
        printf("%s\n", paths[i]);
        turn_into(&f, &g, false);
        fixture_close(&f);
        fixture_close(&g);
    }
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_tensor),
        cmocka_unit_test(test_shared),
        cmocka_unit_test(test_stages),
        cmocka_unit_test(test_refusals),
    };
    return argc > 1 ? turn_files(argc - 1, argv + 1) : cmocka_run_group_tests(tests, NULL, NULL);
}
