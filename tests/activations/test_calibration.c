/*
 * Scales that a sequence gives a cache: of each layer exactly what the largest key and value give
 * in a pass over caches with these scales. test_caches.py holds them against double precision.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clients/activations/calibration.h"
#include "kernels/backend.h"
#include "tests/harness/cmocka.h"
#include "tests/model/fixture.h"

enum { N_LAYERS = 4, N = MODEL_TILE_TOKENS + 70 /* two tiles */ };

struct largest {
    float k[N_LAYERS], v[N_LAYERS];
};

/** On the CPU what is shown is the host's. */
static void on_shown(void *user, struct kern_backend *backend, const struct model_shown *shown)
{
    (void)backend;
    struct largest *l = user;
    float *largest = shown->place == MODEL_AT_K_ROTATED     ? &l->k[shown->layer]
                     : shown->place == MODEL_AT_V_PROJECTED ? &l->v[shown->layer]
                                                            : NULL;
    for (size_t i = 0; largest && i < shown->n_rows * shown->n_heads * shown->size; i++)
        *largest = fmaxf(*largest, fabsf(shown->data[i]));
}

static struct largest evaluate(const struct fixture *f, const struct model_batch *batch)
{
    struct largest l = {{0}, {0}};
    struct model_session_options options = {
        .max_batch = N, .max_segment = N, .trace = on_shown, .trace_user = &l};
    struct model_session *s;
    void *x;
    assert_int_equal(model_session_open(&s, f->model, f->backend, &options, NULL), STATUS_OK);
    assert_int_equal(kern_alloc(f->backend, &x, sizeof(float) * N * 64, NULL), STATUS_OK);
    assert_int_equal(model_embed(s, batch, x, NULL), STATUS_OK);
    assert_int_equal(model_forward(s, batch, 0, N_LAYERS, x, NULL), STATUS_OK);
    kern_free(f->backend, x);
    model_session_close(s);
    return l;
}

static void test_scales_are_those_of_their_own_pass(void **state)
{
    (void)state;
    struct fixture f = fixture_open(&(struct tiny_model_options){.seed = 3, .n_layers = N_LAYERS});
    assert_int_equal(model_hparams(f.model)->n_embd, 64);
    int32_t *tokens = fixture_tokens(&f, 1, N);
    struct model_segment segment;
    struct model_batch batch = fixture_window(tokens, N, &segment);
    const struct model_kv_type e4m3 = {.type = GGUF_TYPE_F8_E4M3, .calibrated = true};
    struct model_kv_scales scales[2][N_LAYERS] = {{{0}}};
    const struct model_kv_types types = {.k = e4m3, .v = e4m3, .scales = scales[0]};
    assert_int_equal(model_round_kv(f.model, &types, NULL), STATUS_OK);
    struct largest uncalibrated = evaluate(&f, &batch);
    for (int i = 0; i < 2; i++) {
        fixture_use_backend(&f, i ? 3 : 1, kern_isa_detect());
        assert_int_equal(act_calibrate(f.model, f.backend, tokens, N, scales[i], NULL), STATUS_OK);
    }
    assert_memory_equal(scales[0], scales[1], sizeof scales[0]);
    assert_ptr_equal(model_hparams(f.model)->kv.scales, scales[1]);
    struct largest l = evaluate(&f, &batch);
    for (uint32_t i = 0; i < N_LAYERS; i++) {
        assert_true(scales[0][i].k == l.k[i] / 200.0f && scales[0][i].v == l.v[i] / 100.0f);
        assert_true((l.k[i] != uncalibrated.k[i]) == (i > 0)); /* it sees the caches before it */
        assert_true(model_key_type(model_hparams(f.model), i).scale == scales[0][i].k);
        assert_true(model_value_type(model_hparams(f.model), i).scale == scales[0][i].v);
    }
    free(tokens);
    fixture_close(&f);
}

/** Types that do not calibrate themselves stay what they are. */
static void test_refusals(void **state)
{
    (void)state;
    struct fixture f = fixture_open(&(struct tiny_model_options){.seed = 4, .n_layers = N_LAYERS});
    struct model_kv_scales scales[N_LAYERS] = {{0, 0}};
    struct status_why why;
    const struct model_kv_types types = {
        .k = {.type = GGUF_TYPE_F8_E4M3, .scale = 0.5f},
        .v = {.type = GGUF_TYPE_F16},
        .v_but = {1, {{MODEL_KV_LAYERS, 1, 1, {GGUF_TYPE_F8_E5M2, 0, true}}}}};
    assert_int_equal(model_round_kv(f.model, &types, NULL), STATUS_OK);
    assert_true(model_kv_calibrated(&types));
    struct model_session *s;
    struct model_session_options options = {.max_batch = 3, .max_segment = 3};
    assert_int_equal(model_session_open(&s, f.model, f.backend, &options, &why), STATUS_USAGE);
    assert_non_null(strstr(why.text, "its cache has no scales yet"));
    const int32_t wrong[] = {0, 1 << 20};
    assert_int_equal(act_calibrate(f.model, f.backend, wrong, 2, scales, &why), STATUS_USAGE);
    assert_non_null(strstr(why.text, "token 1 of the batch is 1048576"));
    const int32_t tokens[] = {5, 6, 7};
    assert_int_equal(act_calibrate(f.model, f.backend, tokens, 3, scales, NULL), STATUS_OK);
    const struct model_hparams *h = model_hparams(f.model);
    assert_true(model_key_type(h, 1).scale == 0.5f && model_value_type(h, 0).scale == 0);
    assert_true(model_value_type(h, 1).scale == scales[1].v && scales[1].v > 0);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scales_are_those_of_their_own_pass),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
