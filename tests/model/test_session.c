/*
 * Sessions: what they allocate, what happens when that fails, progress, cancelling, and
 * batches that they refuse.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/implementation.h"
#include "tests/harness/cmocka.h"
#include "tests/model/fixture.h"

/** A backend that only hands out memory, counts it, and fails when told to. */
struct accountant {
    struct kern_backend base;
    size_t n_bytes, n_live, n_calls;
    size_t fail_at; /* the call that fails, from 1; 0: none */
};

static enum status count_alloc(struct kern_backend *b, void **out, size_t n_bytes,
                               struct status_why *why)
{
    struct accountant *a = (struct accountant *)b;
    *out = NULL;
    if (++a->n_calls == a->fail_at)
        return status_fail(why, STATUS_MEMORY, "no memory");
    a->n_bytes += n_bytes;
    a->n_live++;
    *out = malloc(n_bytes);
    return STATUS_OK;
}

static void count_free(struct kern_backend *b, void *memory)
{
    ((struct accountant *)b)->n_live--;
    free(memory);
}

static struct kern_description describe(const struct kern_backend *b)
{
    (void)b;
    return (struct kern_description){.device = "accountant", .own_memory = true};
}

static const struct kern_backend_ops accountant_ops = {
    .name = "accountant", .describe = describe, .alloc = count_alloc, .free = count_free};

static const struct tiny_model_options models[] = {
    {.seed = 1},
    {.seed = 2, .n_experts = 4, .n_experts_used = 2},
    {.seed = 3, .head_size = 64, .vary_layers = true},
};
enum { N_MODELS = sizeof models / sizeof models[0] };

static const struct model_session_options shapes[] = {
    {.max_batch = 1, .max_segment = 1},
    {.tile_tokens = 64, .max_batch = 1000, .max_segment = 200},
    {.max_batch = 100, .max_segment = 4096},
    {.max_batch = 10000, .max_segment = 512},
};

static void test_bytes(void **state)
{
    (void)state;
    for (size_t m = 0; m < N_MODELS; m++) {
        struct fixture f = fixture_open(&models[m]);
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
            struct accountant a = {.base = {.ops = &accountant_ops}};
            struct model_session *s;
            assert_int_equal(model_session_open(&s, f.model, &a.base, &shapes[i], NULL), STATUS_OK);
            assert_int_equal(a.n_bytes, model_session_bytes(f.model, &shapes[i]));
            model_session_close(s);
            assert_int_equal(a.n_live, 0);
        }
        fixture_close(&f);
    }
}

/** Scratch does not grow with the batch beyond the tile and the longest segment. */
static void test_bytes_bounded(void **state)
{
    (void)state;
    struct fixture f = fixture_open(&models[0]);
    struct model_session_options o = {.max_batch = 4096, .max_segment = 512};
    size_t n_bytes = model_session_bytes(f.model, &o);
    o.tile_tokens = MODEL_TILE_TOKENS; /* what 0 stands for */
    assert_int_equal(model_session_bytes(f.model, &o), n_bytes);
    o.max_batch = 1 << 20;
    assert_int_equal(model_session_bytes(f.model, &o), n_bytes);
    fixture_close(&f);
}

static void test_no_memory(void **state)
{
    (void)state;
    struct fixture f = fixture_open(&models[1]);
    struct accountant a = {.base = {.ops = &accountant_ops}};
    struct model_session *s;
    assert_int_equal(model_session_open(&s, f.model, &a.base, &shapes[1], NULL), STATUS_OK);
    model_session_close(s);
    size_t n_calls = a.n_calls;
    for (size_t i = 1; i <= n_calls; i++) {
        a.n_calls = 0;
        a.fail_at = i;
        assert_int_equal(model_session_open(&s, f.model, &a.base, &shapes[1], NULL), STATUS_MEMORY);
        assert_null(s);
        assert_int_equal(a.n_live, 0);
    }
    fixture_close(&f);
}

/** What the progress callback saw, and when it shall cancel. */
struct watcher {
    size_t n_calls, done, total, cancel_at;
    atomic_bool cancelled;
};

static void watch(void *user, size_t done, size_t total)
{
    struct watcher *w = user;
    w->n_calls++;
    assert_int_equal(done, w->done + 1);
    w->done = done;
    w->total = total;
    if (done == w->cancel_at)
        atomic_store(&w->cancelled, true);
}

enum { N = 300 };

/** A session on the fixture's backend, a batch of two windows, and x. */
struct running {
    struct fixture f;
    struct watcher watcher;
    struct model_session *session;
    int32_t *tokens;
    struct model_segment segments[2];
    struct model_batch batch;
    void *x;
};

static void open_running(struct running *r)
{
    *r = (struct running){.f = fixture_open(&models[0])};
    r->tokens = fixture_tokens(&r->f, 1, N);
    r->segments[0] = (struct model_segment){.n_tokens = 200, .parent = -1};
    r->segments[1] = (struct model_segment){.start = 200, .n_tokens = 100, .parent = -1};
    r->batch = (struct model_batch){
        .tokens = r->tokens, .n_tokens = N, .segments = r->segments, .n_segments = 2};
    struct model_session_options options = {.tile_tokens = 64,
                                            .max_batch = N,
                                            .max_segment = 200,
                                            .progress = watch,
                                            .progress_user = &r->watcher};
    assert_int_equal(model_session_open(&r->session, r->f.model, r->f.backend, &options, NULL),
                     STATUS_OK);
    size_t n_bytes = N * model_hparams(r->f.model)->n_embd * sizeof(float);
    assert_int_equal(kern_alloc(r->f.backend, &r->x, n_bytes, NULL), STATUS_OK);
    assert_int_equal(model_embed(r->session, &r->batch, r->x, NULL), STATUS_OK);
}

static void close_running(struct running *r)
{
    kern_free(r->f.backend, r->x);
    model_session_close(r->session);
    free(r->tokens);
    fixture_close(&r->f);
}

static void test_progress(void **state)
{
    (void)state;
    struct running r;
    open_running(&r);
    assert_int_equal(model_forward(r.session, &r.batch, 0, 2, r.x, NULL), STATUS_OK);
    /* Tiles of 64: 64, 64, 64, 8 of the first window and 64, 36 of the second, in two layers. */
    assert_int_equal(r.watcher.n_calls, 12);
    assert_int_equal(r.watcher.total, 12);
    close_running(&r);
}

static void test_cancel(void **state)
{
    (void)state;
    struct running r;
    open_running(&r);
    kern_set_cancel(r.f.backend, &r.watcher.cancelled);
    r.watcher.cancel_at = 3;
    assert_int_equal(model_forward(r.session, &r.batch, 0, 2, r.x, NULL), STATUS_CANCELLED);
    assert_int_equal(r.watcher.n_calls, 3);
    close_running(&r);
}

static void assert_refused(enum status status, const struct status_why *why, const char *says)
{
    assert_int_equal(status, STATUS_USAGE);
    if (strstr(why->text, says) == NULL)
        fail_msg("found \"%s\", expected \"%s\"", why->text, says);
}

static void test_refusals(void **state)
{
    (void)state;
    struct running r;
    struct status_why why = {0};
    open_running(&r);
    assert_refused(model_forward(r.session, &r.batch, 1, 3, r.x, &why), &why,
                   "layers 1 to 3, expected a range within 0 to 2");
    assert_refused(model_forward(r.session, &r.batch, 2, 1, r.x, &why), &why, "layers 2 to 1");

    r.segments[0].n_tokens = 201;
    r.segments[1] = (struct model_segment){.start = 201, .n_tokens = 99, .parent = -1};
    assert_refused(model_forward(r.session, &r.batch, 0, 2, r.x, &why), &why,
                   "segment 0 reaches position 201, expected at most the session's 200");
    r.segments[0].n_tokens = 200;
    r.segments[1] = (struct model_segment){.start = 200, .n_tokens = 101, .parent = -1};
    r.batch.n_tokens = N + 1;
    assert_refused(model_forward(r.session, &r.batch, 0, 2, r.x, &why), &why,
                   "the batch has 301 tokens, expected at most the session's 300");

    r.batch.n_tokens = N;
    r.tokens[17] = 288;
    assert_refused(model_embed(r.session, &r.batch, r.x, &why), &why,
                   "token 17 of the batch is 288, expected 0 to 287");
    r.tokens[17] = -1;
    assert_refused(model_embed(r.session, &r.batch, r.x, &why), &why, "is -1");

    struct model_session *s;
    struct model_session_options empty = {.max_batch = 1};
    assert_refused(model_session_open(&s, r.f.model, r.f.backend, &empty, &why), &why,
                   "a session for batches of 1 and segments of 0 tokens");
    close_running(&r);
}

/** Endings of one prefix on both sides of the boundary would need two of it. */
static void test_boundary(void **state)
{
    (void)state;
    struct fixture f =
        fixture_open(&(struct tiny_model_options){.long_factors = true, .rope_original_ctx = 20});
    assert_int_equal(model_rope_boundary(f.model), 20);
    int32_t *tokens = fixture_tokens(&f, 1, 30);
    struct model_segment segments[] = {
        {.n_tokens = 15, .parent = -1},
        {.start = 15, .n_tokens = 5, .first_position = 15},
        {.start = 20, .n_tokens = 10, .first_position = 15},
    };
    struct model_batch batch = {tokens, 30, segments, 3};
    struct model_session_options options = {.max_batch = 30, .max_segment = 30};
    struct model_session *s;
    struct status_why why = {0};
    void *x;
    assert_int_equal(model_session_open(&s, f.model, f.backend, &options, NULL), STATUS_OK);
    assert_int_equal(kern_alloc(f.backend, &x, sizeof(float) * 30 * 64, NULL), STATUS_OK);
    assert_int_equal(model_embed(s, &batch, x, NULL), STATUS_OK);
    assert_refused(model_forward(s, &batch, 0, 2, x, &why), &why,
                   "segment 2 reaches position 25, expected it on the same side of 20");
    kern_free(f.backend, x);
    model_session_close(s);
    free(tokens);
    fixture_close(&f);
}

/* 8 heads of 128: 32 such layers and 8192 tokens in F16 are the GiB that is known of LLaMA 3 8B. */
static void test_cache_bytes(void **state)
{
    (void)state;
    struct model_layer_shape layers[32];
    struct model_hparams h = {.n_layers = 32, .layers = layers};
    const struct model_kv_types f16 = {.k = {GGUF_TYPE_F16, 0}, .v = {GGUF_TYPE_F16, 0}};
    const struct model_kv_types q8_0 = {.k = {GGUF_TYPE_Q8_0, 0}, .v = {GGUF_TYPE_F16, 0}};
    for (uint32_t i = 0; i < 32; i++)
        layers[i] = (struct model_layer_shape){
            .n_heads = 32, .n_kv_heads = 8, .key_size = 128, .value_size = 128, .kv_layer = i};
    assert_true(model_cache_bytes(&h, &f16, 8192) == 0x1p30);
    assert_true(model_cache_bytes(&h, &q8_0, 8192) == 0x1p29 * (34.0 / 64) + 0x1p29);
    layers[1].window = 512;
    layers[2].chunk = 1024;
    layers[3].kv_layer = 0;
    double of_token = 8 * 128 * 4;
    assert_true(model_cache_bytes(&h, &f16, 8192) == of_token * (29 * 8192 + 512 + 1024));
    assert_true(model_cache_bytes(&h, &f16, 100) == of_token * 31 * 100);
    struct model_cache_shape shape = model_cache_shape(&h);
    assert_int_equal(shape.k, 29 * 8 * 128);
    assert_int_equal(shape.v, 29 * 8 * 128);
    assert_int_equal(shape.window_k, 2 * 8 * 128);
    assert_int_equal(shape.window_v, 2 * 8 * 128);
    assert_int_equal(shape.window, 1024);

    /* DeepSeek V3: a compressed row of 512 + 64 serves as both. */
    h = (struct model_hparams){.n_layers = 1, .layers = layers, .compressed_keys = true};
    h.ropes[MODEL_ROPE_FULL].n_rot = 64;
    layers[0].mixer = MODEL_LATENT_ATTENTION;
    layers[0].kv_rank = 512;
    assert_true(model_cache_bytes(&h, &f16, 10) == 10 * 576 * 2);
    shape = model_cache_shape(&h);
    assert_true(shape.k == 576 && shape.v == 0 && shape.window == 0);
    const struct model_kv_types parts = {.k = {GGUF_TYPE_FP8_DS_MLA, 0}};
    assert_true(model_cache_bytes(&h, &parts, 10) == 10 * 656); /* as vLLM says of it */
    h.compressed_keys = false;
    assert_true(model_cache_bytes(&h, &f16, 10) == 10 * of_token);

    /* Qwen3-Next: 3 rows of 8192 channels, and 32 heads of 128 x 128, whatever the length. */
    layers[0].mixer = MODEL_DELTA_NET;
    h.recurrent = (struct model_recurrent_hparams){
        .n_taps = 4, .n_inner = 4096, .state = 128, .n_heads = 32, .n_groups = 16};
    assert_true(model_cache_bytes(&h, &f16, 10) == 4 * (3 * 8192 + 32 * 128 * 128));
    shape = model_cache_shape(&h);
    assert_true(shape.k == 0 && shape.state_bytes == 4 * (3 * 8192 + 32 * 128 * 128));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),     cmocka_unit_test(test_bytes_bounded),
        cmocka_unit_test(test_no_memory), cmocka_unit_test(test_progress),
        cmocka_unit_test(test_cancel),    cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_boundary),  cmocka_unit_test(test_cache_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
