#include "model/forward/session.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"
#include "model/forward/index/index.h"
#include "model/forward/streams/ngrams.h"
#include "model/forward/streams/residual.h"

enum { MAX_SEGMENT = INT32_MAX / 2 /* of two tables of angles a row is an int32_t */ };

/** What the blocks of a layer take at most. */
static size_t layer_floats(const struct model *m, size_t i, size_t n_tokens, size_t most_positions)
{
    static model_block_floats_fn *const mixers[] = {
        [MODEL_ATTENTION] = model_attention_floats,
        [MODEL_LATENT_ATTENTION] = model_latent_floats,
        [MODEL_DELTA_NET] = model_recurrent_floats,
        [MODEL_MAMBA2] = model_recurrent_floats,
        [MODEL_KIMI_DELTA_NET] = model_kimi_delta_net_floats,
        [MODEL_SHORT_CONVOLUTION] = model_short_convolution_floats,
        [MODEL_ATTENTION_MAMBA2] = model_attention_mamba2_floats,
        [MODEL_MATRIX] = model_matrix_floats,
    };
    const struct model_layer_shape *shape = &m->hparams.layers[i];
    size_t ffn =
        shape->n_experts > 0 ? model_moe_floats(m, i, n_tokens) : model_ffn_floats(m, i, n_tokens);
    if (shape->mixer == MODEL_RUN_ATTENTION)
        ffn = base_max(ffn, model_runs_floats(m, i, n_tokens, most_positions));
    else if (shape->mixer != MODEL_NO_MIXER)
        ffn = base_max(ffn, mixers[shape->mixer](m, i, n_tokens));
    ffn = base_max(ffn, model_ngrams_floats(m, i, n_tokens));
    const struct model_residual_form *residual = model_residual_of(m);
    if (residual->work_floats)
        ffn = base_max(ffn, residual->work_floats(m, i, n_tokens));
    return m->hparams.per_layer_width ? base_max(ffn, model_input_floats(m, i, n_tokens)) : ffn;
}

/** Room for the states that a layer saves between tiles. */
static void add_states(struct model_scratch *scratch, const struct model *m, size_t i)
{
    struct kern_convolve convolve = model_convolve_of(m, i);
    size_t convolve_floats = kern_convolve_state_bytes(&convolve) / sizeof(float);
    if (m->hparams.layers[i].mixer == MODEL_KIMI_DELTA_NET)
        convolve_floats *= 3; /* of q, k and v */
    scratch->convolve = base_max(scratch->convolve, MODEL_N_STATES * convolve_floats);
    if (m->hparams.layers[i].mixer == MODEL_SHORT_CONVOLUTION)
        return;
    struct kern_recur recur = model_recur_of(m, i);
    size_t recur_floats = kern_recur_state_bytes(&recur) / sizeof(float);
    scratch->recur = base_max(scratch->recur, MODEL_N_STATES * recur_floats);
}

/** Rows of further keys and of what they are made of, and angles to take a rotation back. */
static void add_runs(struct model_scratch *scratch, const struct model *m, size_t i,
                     size_t most_positions)
{
    const struct model_layer_shape *shape = &m->hparams.layers[i];
    size_t n_floats = model_runs_row_floats(m, i, scratch->n_kv_rows, most_positions);
    scratch->runs = base_max(scratch->runs, n_floats);
    scratch->run_terms =
        base_max(scratch->run_terms, shape->run * (size_t)(shape->runs_overlap ? 2 : 1));
    scratch->back[shape->rope] =
        (scratch->n_short + most_positions) * m->hparams.ropes[shape->rope].n_rot;
}

struct model_layer_range model_session_layers(const struct model *model,
                                              const struct model_session_options *options)
{
    return options->layers.to ? options->layers
                              : (struct model_layer_range){0, model->hparams.n_layers};
}

struct model_scratch model_scratch_of(const struct model *model,
                                      const struct model_session_options *options)
{
    const struct model_hparams *h = &model->hparams;
    size_t tile = options->tile_tokens ? options->tile_tokens : MODEL_TILE_TOKENS;
    struct model_scratch scratch = {.n_tokens = base_min(tile, options->max_batch)};
    size_t n_rows = scratch.n_kv_rows =
        base_max(scratch.n_tokens, base_min(options->max_segment, options->max_batch));
    size_t boundary = model_rope_boundary(model);
    scratch.n_short = options->max_segment > boundary ? boundary : 0;
    struct model_layer_range layers = model_session_layers(model, options);
    for (size_t i = layers.from; i < layers.to; i++) {
        const struct model_layer_shape *shape = &h->layers[i];
        struct model_kv_widths w = model_kv_widths(h, i);
        if (model_mixer_has_state(shape->mixer))
            add_states(&scratch, model, i);
        if (shape->ngrams)
            scratch.ngrams = model_ngrams_state_floats(model, i);
        if (shape->mixer == MODEL_RUN_ATTENTION)
            add_runs(&scratch, model, i, options->max_segment);
        scratch.work =
            base_max(scratch.work, layer_floats(model, i, scratch.n_tokens, options->max_segment));
        if (shape->kept >= 0) {
            scratch.kept[shape->kept] = options->max_batch * (w.k + w.v);
        } else {
            scratch.k = base_max(scratch.k, n_rows * w.k);
            scratch.v = base_max(scratch.v, n_rows * w.v);
        }
        if (model_index_decides(h, i, options->max_segment)) {
            scratch.index_k = base_max(scratch.index_k, model_index_row_floats(h, i, n_rows));
            scratch.run_terms = base_max(scratch.run_terms, shape->pool);
            scratch.chosen =
                model_chosen_floats(h, scratch.n_tokens, options->max_batch, options->max_segment);
        }
        if (shape->rope != MODEL_ROPE_OFF && w.k > 0)
            scratch.angles[shape->rope] =
                (scratch.n_short + options->max_segment) * h->ropes[shape->rope].n_rot;
    }
    scratch.h = scratch.n_tokens * h->n_embd;
    if (layers.to == h->n_layers && h->layers[layers.to - 1].mixer == MODEL_ATTENTION &&
        h->n_streams == 1)
        scratch.wanted = scratch.h;
    bool sums = h->experts.width || (h->experts.n > 0 && model->arch->norms.ffn_post);
    scratch.zeros = sums || h->n_streams > 1 ? h->n_embd : 0;
    const struct model_residual_form *residual = model_residual_of(model);
    if (residual->floats)
        scratch.streams = residual->floats(model, scratch.n_tokens);
    if (residual->constants)
        scratch.zeros += residual->constants(model, NULL);
    return scratch;
}

/** Pointers of the session's backend memory beside their sizes in floats. */
enum { N_BUFFERS = 13 + 2 * MODEL_N_ROPES + MODEL_N_KEPT };

struct buffer {
    float **memory;
    size_t n_floats;
};

static void list_buffers(struct model_session *s, struct buffer list[N_BUFFERS])
{
    const struct model_scratch *z = &s->scratch;
    const struct buffer fixed[] = {
        {&s->h, z->h},
        {&s->k, z->k},
        {&s->v, z->v},
        {&s->zeros, z->zeros},
        {&s->wanted, z->wanted},
        {&s->work, z->work},
        {&s->streams, z->streams},
        {&s->run_rows, z->runs},
        {&s->convolve_states, z->convolve},
        {&s->recur_states, z->recur},
        {&s->ngram_states, z->ngrams},
        {&s->index_k, z->index_k},
        {&s->chosen, z->chosen},
    };
    size_t n = sizeof fixed / sizeof *fixed;
    memcpy(list, fixed, sizeof fixed);
    for (size_t i = 0; i < MODEL_N_ROPES; i++) {
        list[n++] = (struct buffer){&s->angles[i], z->angles[i]};
        list[n++] = (struct buffer){&s->back_angles[i], z->back[i]};
    }
    for (size_t i = 0; i < MODEL_N_KEPT; i++)
        list[n++] = (struct buffer){&s->kept[i], z->kept[i]};
}

size_t model_session_bytes(const struct model *model, const struct model_session_options *options)
{
    struct model_session s = {.scratch = model_scratch_of(model, options)};
    struct buffer list[N_BUFFERS];
    list_buffers(&s, list);
    size_t n_floats = 0;
    for (size_t i = 0; i < N_BUFFERS; i++)
        n_floats += list[i].n_floats;
    return n_floats * sizeof(float);
}

static enum status alloc_backend(struct model_session *s, struct status_why *why)
{
    struct buffer list[N_BUFFERS];
    list_buffers(s, list);
    for (size_t i = 0; i < N_BUFFERS; i++) {
        if (list[i].n_floats == 0)
            continue;
        void *memory;
        enum status status = kern_alloc(s->backend, &memory, list[i].n_floats * sizeof(float), why);
        if (status)
            return status;
        *list[i].memory = memory;
    }
    if (s->scratch.zeros == 0)
        return STATUS_OK;
    float *zeros = calloc(s->scratch.zeros, sizeof *zeros);
    const struct model_residual_form *residual = model_residual_of(s->model);
    if (zeros && residual->constants)
        (void)residual->constants(s->model, zeros + s->model->hparams.n_embd);
    enum status status =
        zeros ? kern_upload(s->backend, s->zeros, zeros, s->scratch.zeros * sizeof *zeros, why)
              : status_fail(why, STATUS_MEMORY, "no memory for a row of zeros");
    free(zeros);
    return status;
}

static enum status alloc_host(struct model_session *s, struct status_why *why)
{
    size_t t = s->scratch.n_tokens;
    size_t n_used = s->model->hparams.experts.n_used;
    s->positions = calloc(t, sizeof *s->positions);
    s->angle_rows = calloc(t, sizeof *s->angle_rows);
    s->ranges = calloc(t, sizeof *s->ranges);
    s->factors = calloc(t, sizeof *s->factors);
    s->wanted_rows = calloc(t, sizeof *s->wanted_rows);
    bool ok = s->positions && s->angle_rows && s->ranges && s->factors && s->wanted_rows;
    if (s->model->hparams.recurrent.n_taps > 0) {
        s->runs = calloc(t, sizeof *s->runs);
        ok = ok && s->runs;
    }
    if (s->scratch.run_terms > 0) {
        s->run_ranges = calloc(t, sizeof *s->run_ranges);
        s->run_tokens = calloc(t, sizeof *s->run_tokens);
        s->run_positions = calloc(t, sizeof *s->run_positions);
        s->run_terms = calloc(t * s->scratch.run_terms, sizeof *s->run_terms);
        s->run_seen = calloc(t, sizeof *s->run_seen);
        ok =
            ok && s->run_ranges && s->run_tokens && s->run_positions && s->run_terms && s->run_seen;
    }
    if (s->model->hparams.ngrams.most > 0) {
        s->ngram_rows = calloc(t * model_ngram_rows(&s->model->hparams.ngrams), sizeof(int32_t));
        ok = ok && s->ngram_rows;
    }
    if (n_used > 0) {
        s->experts = calloc(t * n_used, sizeof *s->experts);
        s->shares = calloc(t * n_used, sizeof *s->shares);
        s->expert_rows = calloc(t * n_used, sizeof *s->expert_rows);
        s->expert_shares = calloc(t * n_used, sizeof *s->expert_shares);
        s->expert_ends = calloc(s->model->hparams.experts.n, sizeof *s->expert_ends);
        ok = ok && s->experts && s->shares && s->expert_rows && s->expert_shares && s->expert_ends;
    }
    if (n_used > 0 && kern_describe(s->backend).own_memory) {
        struct model_by_row *b = &s->by_row;
        b->ends = calloc(t, sizeof *b->ends);
        b->from = calloc(t, sizeof *b->from);
        b->rows = calloc(t, sizeof *b->rows);
        b->shares = calloc(t, sizeof *b->shares);
        ok = ok && b->ends && b->from && b->rows && b->shares;
    }
    if (!ok)
        return status_fail(why, STATUS_MEMORY, "no memory for a tile of %zu tokens", t);
    return STATUS_OK;
}

/** A walk over weights that stops at the first failure. */
struct preload {
    struct kern_backend *backend;
    struct status_why *why;
    enum status status;
};

static void preload_weight(void *user, const struct kern_weight *weight, double share)
{
    (void)share;
    struct preload *p = user;
    if (!p->status)
        p->status = kern_preload(p->backend, weight, p->why);
}

static enum status preload(const struct model_session *s, struct status_why *why)
{
    struct preload p = {s->backend, why, STATUS_OK};
    struct model_layer_range layers = model_session_layers(s->model, &s->options);
    for (size_t i = layers.from; !p.status && i < layers.to; i++)
        model_layer_walk(s->model, i, preload_weight, &p);
    return p.status;
}

enum status model_session_open(struct model_session **out, const struct model *model,
                               struct kern_backend *backend,
                               const struct model_session_options *options, struct status_why *why)
{
    *out = NULL;
    if (options->max_batch == 0 || options->max_segment == 0 || options->max_segment > MAX_SEGMENT)
        return status_fail(why, STATUS_USAGE,
                           "a session for batches of %zu and segments of %zu tokens, expected 1 "
                           "or more and at most %d per segment",
                           options->max_batch, options->max_segment, MAX_SEGMENT);
    const struct model_kv_types *kv = &model_hparams(model)->kv;
    if (model_kv_calibrated(kv) && !kv->scales)
        return status_fail(why, STATUS_USAGE,
                           "%s: its cache has no scales yet, and the windows of a text alone "
                           "calibrate them; expected a number after @ instead of calibrated",
                           gguf_path(model_file(model)));
    struct model_session *s = calloc(1, sizeof *s);
    if (!s)
        return status_fail(why, STATUS_MEMORY, "no memory for a session");
    s->model = model;
    s->backend = backend;
    s->options = *options;
    s->scratch = model_scratch_of(model, options);
    enum status status = alloc_host(s, why);
    if (!status)
        status = alloc_backend(s, why);
    if (!status)
        status = preload(s, why);
    if (status) {
        model_session_close(s);
        return status;
    }
    *out = s;
    return STATUS_OK;
}

void model_session_close(struct model_session *s)
{
    if (!s)
        return;
    struct buffer list[N_BUFFERS];
    list_buffers(s, list);
    for (size_t i = 0; i < N_BUFFERS; i++)
        kern_free(s->backend, *list[i].memory);
    free(s->positions);
    free(s->angle_rows);
    free(s->ranges);
    free(s->factors);
    free(s->wanted_rows);
    free(s->ngram_rows);
    free(s->runs);
    free(s->run_ranges);
    free(s->run_tokens);
    free(s->run_positions);
    free(s->run_terms);
    free(s->run_seen);
    free(s->experts);
    free(s->shares);
    free(s->expert_rows);
    free(s->expert_shares);
    free(s->expert_ends);
    free(s->by_row.ends);
    free(s->by_row.from);
    free(s->by_row.rows);
    free(s->by_row.shares);
    free(s);
}
