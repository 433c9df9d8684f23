#include "clients/activations/calibration.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/arithmetic.h"
#include "gguf/gguf.h"
#include "kernels/kernels.h"
#include "model/forward/forward.h"

static const float key_range = 200.0f, value_range = 100.0f;

/** Places that show keys and values before a cache rounds them; of a layer the last one counts. */
enum { KEYS, VALUES, N_KINDS };
static const struct {
    enum model_place place;
    int kind;
} places[] = {
    {MODEL_AT_KV_LOW_NORM, KEYS}, {MODEL_AT_K_PROJECTED, KEYS}, {MODEL_AT_K_NORM, KEYS},
    {MODEL_AT_K_ROTATED, KEYS},   {MODEL_AT_K_BARE_NORM, KEYS}, {MODEL_AT_V_PROJECTED, VALUES},
    {MODEL_AT_V_NORM, VALUES},
};

/** What a layer has shown. */
struct largest {
    float of[MODEL_N_PLACES]; /* the largest magnitude of each place */
    enum model_place last[N_KINDS];
    float *rows; /* scratch, [n_rows] */
    size_t n_rows;
    enum status status;
    struct status_why *why;
};

static void take(struct largest *l, struct kern_backend *backend, const struct model_shown *shown)
{
    size_t n = shown->n_rows * shown->n_heads * shown->size;
    if (n > l->n_rows) {
        free(l->rows);
        l->rows = malloc(n * sizeof *l->rows);
        l->n_rows = l->rows ? n : 0;
    }
    l->status = l->rows ? kern_download(backend, l->rows, shown->data, n * sizeof *l->rows, l->why)
                        : status_fail(l->why, STATUS_MEMORY, "no memory for keys of a tile");
    float *largest = &l->of[shown->place];
    for (size_t i = 0; i < n && !l->status; i++)
        *largest = fabsf(l->rows[i]) <= *largest ? *largest : fabsf(l->rows[i]); /* NaN counts */
}

static void on_shown(void *user, struct kern_backend *backend, const struct model_shown *shown)
{
    struct largest *l = user;
    for (size_t i = 0; i < sizeof places / sizeof *places && !l->status; i++)
        if (places[i].place == shown->place) {
            l->last[places[i].kind] = shown->place;
            take(l, backend, shown);
        }
}

/** One evaluation of a sequence, layer after layer. */
struct pass {
    struct model *model;
    struct kern_backend *backend;
    struct model_session *session;
    struct model_batch batch;
    float *x, *saved; /* what enters a layer: backend memory, and the host's copy */
    size_t n_bytes;
    struct largest largest;
};

static enum status finish(const struct pass *p, size_t i_layer, struct model_kv_scales *out,
                          struct status_why *why)
{
    const struct model_hparams *h = model_hparams(p->model);
    const struct largest *l = &p->largest;
    bool compressed = model_keys_are_compressed(h, i_layer);
    float k = l->of[compressed ? MODEL_AT_KV_LOW_NORM : l->last[KEYS]],
          v = compressed ? k : l->of[l->last[VALUES]];
    if (!(k <= FLT_MAX && v <= FLT_MAX))
        return status_fail(why, STATUS_NONFINITE,
                           "%s: the keys or values of layer %zu are not finite, expected numbers "
                           "that a scale can be calibrated from",
                           gguf_path(model_file(p->model)), i_layer);
    *out = (struct model_kv_scales){k / key_range, compressed ? k / key_range : v / value_range};
    return STATUS_OK;
}

/** The layer as it is, for its keys and values; then over what its cache makes of these. */
static enum status advance(struct pass *p, size_t i, struct model_kv_scales *out,
                           struct status_why *why)
{
    const struct model_layer_shape *layer = &model_hparams(p->model)->layers[i];
    bool own = model_mixer_has_keys(layer->mixer) && layer->kv_layer == i;
    struct largest *l = &p->largest;
    enum status status = STATUS_OK;
    if (own) {
        *l = (struct largest){.rows = l->rows, .n_rows = l->n_rows, .why = why};
        status = kern_download(p->backend, p->saved, p->x, p->n_bytes, why);
        if (!status)
            status = model_forward(p->session, &p->batch, i, i + 1, p->x, why);
        if (!status)
            status = l->status ? l->status : finish(p, i, out, why);
        if (!status)
            status = kern_upload(p->backend, p->x, p->saved, p->n_bytes, why);
    }
    return status ? status : model_forward(p->session, &p->batch, i, i + 1, p->x, why);
}

static enum status run(struct pass *p, struct model_kv_scales *scales, struct status_why *why)
{
    struct model_kv_types types = model_hparams(p->model)->kv;
    struct model_session_options options = {.max_batch = p->batch.n_tokens,
                                            .max_segment = p->batch.n_tokens,
                                            .trace = on_shown,
                                            .trace_user = &p->largest};
    types.scales = scales;
    enum status status = model_round_kv(p->model, &types, why);
    if (!status)
        status = model_session_open(&p->session, p->model, p->backend, &options, why);
    if (!status)
        status = model_embed(p->session, &p->batch, p->x, why);
    for (size_t i = 0; i < model_hparams(p->model)->n_layers && !status; i++)
        status = advance(p, i, &scales[i], why);
    model_session_close(p->session);
    return status;
}

enum status act_calibrate(struct model *model, struct kern_backend *backend, const int32_t *tokens,
                          size_t n_tokens, struct model_kv_scales *scales, struct status_why *why)
{
    const struct model_segment segment = {.n_tokens = n_tokens, .parent = -1};
    struct pass p = {
        .model = model,
        .backend = backend,
        .batch = {.tokens = tokens, .n_tokens = n_tokens, .segments = &segment, .n_segments = 1},
        .n_bytes = n_tokens * model_residual_width(model_hparams(model)) * sizeof(float)};
    void *x = NULL;
    enum status status = kern_alloc(backend, &x, p.n_bytes, why);
    p.x = x;
    p.saved = malloc(p.n_bytes);
    if (!status && !p.saved)
        status = status_fail(why, STATUS_MEMORY, "no memory for %zu bytes of rows", p.n_bytes);
    if (!status)
        status = run(&p, scales, why);
    kern_free(backend, p.x);
    free(p.saved);
    free(p.largest.rows);
    return status;
}
