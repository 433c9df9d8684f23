/*
 * Passes that begin with kept residual streams give the bits of whole passes: for caches of every
 * size, in memory and in a file, for each tensor that is swapped and given back, over several
 * batches. With arguments "A.gguf B.gguf ..." pairs of models come from files.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "eval/streams/cache.h"
#include "kernels/backend.h"
#include "model/swap.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/compare.h"
#include "tests/harness/temp.h"
#include "tests/model/fixture.h"

enum { N = 8, N_BATCHES = 3 };

/** What passes without a cache give, in the order of a sweep: the first sweep writes it. */
struct tape {
    float *x;
    size_t n, at; /* floats: written, and read of them */
};

/** A model with sessions for passes with a cache and without one. */
struct scene {
    struct fixture *f;
    struct model_session *session, *plain;
    struct tape *tape; /* begins anew with the scene */
    float *x;
    int32_t *tokens[N_BATCHES];
    size_t n_steps; /* layers of the passes with a cache */
};

static size_t n_floats(const struct scene *s)
{
    return N * model_residual_width(model_hparams(s->f->model));
}

static void must(enum status status, const struct status_why *why)
{
    if (status)
        fail_msg("%s", why->text);
}

static struct scene scene_open(struct fixture *f, struct tape *tape)
{
    struct scene s = {.f = f, .tape = tape};
    struct model_session_options options = {.max_batch = N, .max_segment = N};
    struct status_why why = {0};
    void *x;
    tape->at = 0;
    must(model_session_open(&s.session, f->model, f->backend, &options, &why), &why);
    must(model_session_open(&s.plain, f->model, f->backend, &options, &why), &why);
    must(kern_alloc(f->backend, &x, n_floats(&s) * sizeof(float), &why), &why);
    s.x = x;
    for (size_t i = 0; i < N_BATCHES; i++)
        s.tokens[i] = fixture_tokens(f, i + 1, N);
    return s;
}

static void scene_close(struct scene *s)
{
    for (size_t i = 0; i < N_BATCHES; i++)
        free(s->tokens[i]);
    kern_free(s->f->backend, s->x);
    model_session_close(s->session);
    model_session_close(s->plain);
}

/** A pass over a batch as the scorer has it. */
static void pass(struct scene *s, struct eval_cache *cache, const struct model_batch *batch)
{
    struct status_why why = {0};
    struct eval_cache_pass p = {
        .cache = cache, .model = s->f->model, .backend = s->f->backend, .x = s->x};
    size_t layer, n_layers = model_hparams(p.model)->n_layers;
    bool found;
    must(eval_cache_begin(&p, batch, &layer, &found, &why), &why);
    if (!found)
        must(model_embed(s->session, batch, s->x, &why), &why);
    while (layer < n_layers) {
        size_t next = eval_cache_next(&p, layer);
        assert_in_range(next, layer + 1, n_layers);
        s->n_steps += next - layer;
        must(model_forward(s->session, batch, layer, next, s->x, &why), &why);
        layer = next;
        must(eval_cache_keep(&p, layer, &why), &why);
    }
}

/** The batch without a cache. */
static const float *wanted(struct scene *s, const struct model_batch *batch)
{
    struct tape *t = s->tape;
    struct status_why why = {0};
    size_t n = n_floats(s), n_layers = model_hparams(s->f->model)->n_layers;
    if (t->at == t->n) {
        t->n += n;
        t->x = realloc(t->x, t->n * sizeof *t->x);
        assert_non_null(t->x);
        must(model_embed(s->plain, batch, t->x + t->at, &why), &why);
        must(model_forward(s->plain, batch, 0, n_layers, t->x + t->at, &why), &why);
    }
    t->at += n;
    return t->x + t->at - n;
}

/** Every batch, with the cache and without. */
static void compare(struct scene *s, struct eval_cache *cache, const char *what)
{
    struct model_segment segment;
    for (size_t i = 0; i < N_BATCHES; i++) {
        struct model_batch batch = fixture_window(s->tokens[i], N, &segment);
        pass(s, cache, &batch);
        if (compare_bits(s->x, wanted(s, &batch), n_floats(s)) != n_floats(s))
            fail_msg("%s: batch %zu has other bits with the cache", what, i);
    }
}

/** Swap each tensor, compare, give it back; returns how many layers were passed through. */
static size_t sweep(struct fixture *f, const struct fixture *g,
                    const struct eval_cache_options *options, struct tape *tape)
{
    struct scene s = scene_open(f, tape);
    struct status_why why = {0};
    struct eval_cache *cache;
    const struct gguf_file *file = model_file(g->model);
    must(eval_cache_open(&cache, f->model, options, &why), &why);
    compare(&s, cache, "first");
    for (size_t i = 0; i < gguf_n_tensors(file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(file, i);
        must(model_swap(f->model, t->name, file, t, &why), &why);
        compare(&s, cache, t->name);
        must(model_swap(f->model, t->name, NULL, NULL, &why), &why);
        if (i % 5 == 0)
            compare(&s, cache, "given back");
    }
    eval_cache_close(cache);
    scene_close(&s);
    return s.n_steps;
}

/** Caches of all sizes: the larger, the fewer layers are passed through. */
static void every_size(struct fixture *f, const struct fixture *g, const char *path,
                       struct tape *tape)
{
    const struct model_hparams *h = model_hparams(f->model);
    struct eval_cache_options options = {.n_tokens = N * N_BATCHES, .path = path};
    double plane = (double)options.n_tokens * h->n_embd * sizeof(float);
    size_t before = SIZE_MAX, whole = sweep(f, g, &options, tape);
    for (size_t k = 0; k <= h->n_layers; k += 1 + h->n_layers / 4) {
        options.n_bytes = plane * (double)k;
        size_t n = sweep(f, g, &options, tape);
        assert_true(k == 0 ? n == whole : n < whole);
        if (k > 0 && k == h->n_layers)
            assert_true(n <= before);
        before = n;
    }
    options.n_bytes = plane / 2; /* one of the batches */
    assert_true(sweep(f, g, &options, tape) < whole);
    options = (struct eval_cache_options){.ascending = true};
    assert_true(sweep(f, g, &options, tape) <= whole);
}

static void test_sizes(void **state)
{
    (void)state;
    char folder[64], path[128];
    temp_make(folder);
    struct fixture f =
        fixture_open(&(struct tiny_model_options){.seed = 1, .n_layers = 5, .rope_factors = true});
    struct fixture g =
        fixture_open(&(struct tiny_model_options){.seed = 2, .n_layers = 5, .rope_factors = true});
    struct tape tape = {0};
    every_size(&f, &g, NULL, &tape);
    every_size(&f, &g, temp_path(path, folder, "cache"), &tape);
    free(tape.x);
    assert_int_not_equal(access(path, F_OK), 0); /* its file has no name */
    fixture_close(&f);
    fixture_close(&g);
    rmdir(folder);
}

/** What is told of a stage: passes begin exactly there. */
static void test_steps(void **state)
{
    (void)state;
    struct fixture f = fixture_open(&(struct tiny_model_options){.seed = 1, .n_layers = 6});
    struct fixture g = fixture_open(&(struct tiny_model_options){.seed = 2, .n_layers = 6});
    const struct gguf_file *file = model_file(g.model);
    struct tape tape = {0};
    struct scene s = scene_open(&f, &tape);
    struct eval_cache *cache;
    const struct eval_cache_options options = {.n_bytes = 1e9, .n_tokens = N * N_BATCHES};
    assert_int_equal(eval_cache_open(&cache, f.model, &options, NULL), 0);
    compare(&s, cache, "first");
    static const struct {
        const char *name;
        size_t n_layers;
    } cases[] = {{"blk.0.ffn_up.weight", 6}, {"blk.4.attn_q.weight", 2}, {"blk.5.ffn_up.weight", 1},
                 {"output_norm.weight", 0},  {"output.weight", 0},       {"token_embd.weight", 6}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        s.n_steps = 0;
        assert_int_equal(
            model_swap(f.model, cases[i].name, file, gguf_tensor_find(file, cases[i].name), NULL),
            0);
        compare(&s, cache, cases[i].name);
        assert_int_equal(s.n_steps, N_BATCHES * cases[i].n_layers);
        assert_int_equal(model_swap(f.model, cases[i].name, NULL, NULL, NULL), 0);
    }
    eval_cache_close(cache);
    scene_close(&s);
    free(tape.x);
    fixture_close(&f);
    fixture_close(&g);
}

static void test_bad_file(void **state)
{
    (void)state;
    struct fixture f = fixture_open(&(struct tiny_model_options){.seed = 1});
    struct status_why why = {0};
    struct eval_cache *cache;
    const struct eval_cache_options options = {.n_bytes = 1e6, .n_tokens = N, .path = "/no/where"};
    assert_int_equal(eval_cache_open(&cache, f.model, &options, &why), STATUS_IO);
    assert_string_equal(why.text, "/no/where: cannot be created: No such file or directory");
    assert_null(cache);
    fixture_close(&f);
}

static int files(int n, char **paths)
{
    for (int i = 0; i + 1 < n; i += 2) {
        struct fixture f = fixture_open_file(paths[i], &(struct model_options){0});
        struct fixture g = fixture_open_file(paths[i + 1], &(struct model_options){0});
        printf("%s\n", paths[i]);
        struct tape tape = {0};
        sweep(&f, &g, &(struct eval_cache_options){.n_bytes = 1e7, .n_tokens = N * N_BATCHES},
              &tape);
        free(tape.x);
        fixture_close(&f);
        fixture_close(&g);
    }
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_bad_file),
    };
    return argc > 1 ? files(argc - 1, argv + 1) : cmocka_run_group_tests(tests, NULL, NULL);
}
