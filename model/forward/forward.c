#include "model/forward/forward.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"
#include "model/forward/read_ahead.h"
#include "model/forward/session.h"
#include "model/forward/streams/ngrams.h"
#include "model/forward/streams/residual.h"

/** What the session's memory was made for. */
static enum status check_batch(const struct model_session *s, const struct model_batch *batch,
                               struct status_why *why)
{
    enum status status = model_batch_check(batch, why);
    if (status)
        return status;
    if (batch->n_tokens > s->options.max_batch)
        return status_fail(why, STATUS_USAGE,
                           "the batch has %zu tokens, expected at most the session's %zu",
                           batch->n_tokens, s->options.max_batch);
    size_t boundary = model_rope_boundary(s->model);
    for (size_t i = 0; i < batch->n_segments; i++) {
        const struct model_segment *segment = &batch->segments[i];
        size_t end = (size_t)segment->first_position + segment->n_tokens;
        if (end > s->options.max_segment)
            return status_fail(why, STATUS_USAGE,
                               "segment %zu reaches position %zu, expected at most the session's "
                               "%zu positions",
                               i, end, s->options.max_segment);
        if (segment->parent >= 0 &&
            (end > boundary) != (model_batch_length(batch, (size_t)segment->parent) > boundary))
            return status_fail(why, STATUS_USAGE,
                               "segment %zu reaches position %zu, expected it on the same side of "
                               "%zu as the others with its parent: longer sequences have other "
                               "angles",
                               i, end, boundary);
    }
    return STATUS_OK;
}

enum { ANGLE_POSITIONS = 1024 /* at a time: a long table has no copy on the host */ };

/** A table of angles, or of those that take a rotation back. */
static enum status fill_one(struct model_session *s, enum model_rope_use use, bool back,
                            struct status_why *why)
{
    size_t row = s->model->hparams.ropes[use].n_rot / 2 * 2, n_pairs = row / 2;
    float *angles = malloc(ANGLE_POSITIONS * row * sizeof *angles);
    double *frequency = malloc(n_pairs * sizeof *frequency);
    float *to = back ? s->back_angles[use] : s->angles[use];
    const size_t parts[] = {s->scratch.n_short, s->options.max_segment};
    enum status status = STATUS_OK;
    if (!angles || !frequency)
        status = status_fail(why, STATUS_MEMORY, "no memory for angles");
    for (size_t p = 0; p < 2 && !status; p++) {
        double magnitude = model_rope_frequencies(s->model, use, parts[p], frequency);
        for (size_t i = 0; i < n_pairs && back; i++)
            frequency[i] = -frequency[i];
        for (size_t first = 0, n; first < parts[p] && !status; first += n, to += n * row) {
            n = base_min(parts[p] - first, ANGLE_POSITIONS);
            kern_rope_fill(angles, first, n, frequency, n_pairs, magnitude);
            status = kern_upload(s->backend, to, angles, n * row * sizeof *angles, why);
        }
    }
    free(frequency);
    free(angles);
    return status;
}

/** cos and sin of all angles, filled when first needed or when the factors have changed. */
static enum status fill_angles(struct model_session *s, struct status_why *why)
{
    uint64_t generations[MODEL_N_FACTORS];
    for (size_t i = 0; i < MODEL_N_FACTORS; i++)
        generations[i] = s->model->factors[i].generation;
    if (memcmp(generations, s->factor_generations, sizeof generations) == 0)
        return STATUS_OK;
    enum status status = STATUS_OK;
    for (int use = 0; use < MODEL_N_ROPES && !status; use++) {
        if (s->scratch.angles[use] > 0)
            status = fill_one(s, (enum model_rope_use)use, false, why);
        if (!status && s->scratch.back[use] > 0)
            status = fill_one(s, (enum model_rope_use)use, true, why);
    }
    if (!status)
        memcpy(s->factor_generations, generations, sizeof generations);
    return status;
}

enum status model_check_ids(const struct model_session *s, const int32_t *ids, size_t n,
                            struct status_why *why)
{
    uint32_t n_vocab = s->model->hparams.n_vocab;
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || (uint32_t)ids[i] >= n_vocab)
            return status_fail(why, STATUS_USAGE, "token %zu of the batch is %d, expected 0 to %u",
                               i, ids[i], n_vocab - 1);
    return STATUS_OK;
}

enum status model_embed(struct model_session *s, const struct model_batch *batch, float *x,
                        struct status_why *why)
{
    s->failure = (struct status_kept){0};
    MODEL_TRY(s, model_check_ids(s, batch->tokens, batch->n_tokens, &s->failure.why));
    model_residual_of(s->model)->begin(s, batch->tokens, batch->n_tokens, x);
    return status_of(&s->failure, why);
}

/** Counting steps for the caller. */
struct progress {
    size_t done, total;
};

/** What mixes the tokens, by enum model_mixer. */
static model_block_fn *const mixers[] = {
    [MODEL_ATTENTION] = model_block_attention,
    [MODEL_LATENT_ATTENTION] = model_block_latent,
    [MODEL_RUN_ATTENTION] = model_block_runs,
    [MODEL_DELTA_NET] = model_block_delta_net,
    [MODEL_MAMBA2] = model_block_mamba2,
    [MODEL_KIMI_DELTA_NET] = model_block_kimi_delta_net,
    [MODEL_SHORT_CONVOLUTION] = model_block_short_convolution,
    [MODEL_ATTENTION_MAMBA2] = model_block_attention_mamba2,
    [MODEL_MATRIX] = model_block_matrix,
    [MODEL_NO_MIXER] = NULL,
};

/** One branch of a layer, on the residual itself or between streams that are mixed. */
static void branch(struct model_session *s, const struct model_step *tile, model_block_fn *block,
                   const struct model_stream_mixer *mixer)
{
    struct model_step step;
    if (!mixer->product.weight.data) {
        block(s, tile);
        return;
    }
    const struct model_residual_form *residual = model_residual_of(s->model);
    residual->open(s, tile, mixer, &step);
    block(s, &step);
    residual->close(s, tile);
}

/** The feed-forward of a layer; NULL: it has none. */
static model_block_fn *feed_forward(const struct model_layer_shape *shape)
{
    if (shape->n_experts > 0)
        return shape->n_ff > 0 ? model_block_beside : model_block_moe;
    return shape->n_ff > 0 ? model_block_ffn : NULL;
}

static void forward_branches(struct model_session *s, const struct model_step *step)
{
    const struct model_layer_shape *shape = step->shape;
    size_t n_embd = s->model->hparams.n_embd;
    if (shape->n_experts > 0 && s->model->arch->early_router)
        model_block_route(s, step);
    if (shape->ngrams)
        model_block_ngrams(s, step);
    if (mixers[shape->mixer])
        branch(s, step, mixers[shape->mixer], &step->layer->attn_mixer);
    model_show(s, MODEL_AT_ATTN_RESIDUAL, step->x, s->model->hparams.n_streams, n_embd);
    if (feed_forward(shape))
        branch(s, step, feed_forward(shape), &step->layer->ffn_mixer);
    model_block_input(s, step);
    model_show(s, MODEL_AT_LAYER_OUT, step->x, s->model->hparams.n_streams, n_embd);
}

static void forward_tile(struct model_session *s, const struct model_step *step)
{
    const struct model_layer_shape *shape = step->shape;
    const struct model_residual_form *residual = model_residual_of(s->model);
    if (residual->layer)
        residual->layer(s, step, mixers[shape->mixer], feed_forward(shape));
    else
        forward_branches(s, step);
}

/**
 * Let ranges, positions and angles be those of the tile's wanted tokens alone; returns how many
 * ranges these are. n_wanted: tokens, whose rows in the tile are in s->wanted_rows.
 */
static size_t take_wanted(struct model_session *s, const struct model_step *step, size_t *n_wanted)
{
    size_t n = 0, n_ranges = 0;
    for (size_t i = 0; i < step->n_ranges; i++) {
        struct kern_query_range range = s->ranges[i];
        size_t n_unwanted = step->batch->segments[step->tile.segment + i].n_unwanted;
        size_t skip = n_unwanted > range.q_offset ? n_unwanted - range.q_offset : 0;
        if (skip >= range.n_q)
            continue;
        size_t row = range.q_row + skip;
        range.q_row = n;
        range.q_offset += skip;
        range.n_q -= skip;
        s->ranges[n_ranges++] = range;
        for (size_t t = 0; t < range.n_q; t++, n++, row++) {
            s->positions[n] = s->positions[row];
            s->angle_rows[n] = s->angle_rows[row];
            s->wanted_rows[n] = (uint32_t)row;
        }
    }
    *n_wanted = n;
    return n_ranges;
}

/** The last layer: keys and values of all of the tile's tokens, all else of the wanted ones. */
static void forward_wanted(struct model_session *s, const struct model_step *tile)
{
    size_t width = model_residual_width(&s->model->hparams), n;
    model_block_keys(s, tile);
    struct model_step step = *tile;
    step.n_ranges = take_wanted(s, tile, &n);
    step.tile.n_tokens = n;
    step.x = step.to = s->wanted;
    step.keys_done = true;
    if (n == 0)
        return;
    struct kern_gather op = {tile->x, s->wanted_rows, n, width, step.x};
    MODEL_TRY(s, kern_gather(s->backend, &op, &s->failure.why));
    forward_tile(s, &step);
    for (size_t i = 0; !s->failure.status && i < step.n_ranges; i++) {
        const struct kern_query_range *range = &s->ranges[i];
        struct kern_copy back = {.x = step.x + range->q_row * width,
                                 .x_stride = width,
                                 .y = tile->x + s->wanted_rows[range->q_row] * width,
                                 .width = width,
                                 .n_rows = range->n_q};
        model_copy(s, back);
    }
}

/** Whether the last layer can leave out queries: its own keys alone have to be there, and a trace
 * is shown whole tiles. */
static bool narrows(const struct model_session *s, const struct model_step *step)
{
    const struct model_hparams *h = &s->model->hparams;
    if (step->i_layer + 1 != h->n_layers || step->shape->mixer != MODEL_ATTENTION ||
        step->shape->kv_layer != step->i_layer || step->shape->kept >= 0 || h->per_layer_width ||
        h->n_streams > 1 || s->options.trace)
        return false;
    for (size_t i = 0; i < step->n_ranges; i++)
        if (step->batch->segments[step->tile.segment + i].n_unwanted > s->ranges[i].q_offset)
            return true;
    return false;
}

/** Each sequence is rotated by the angles of its own length; a long one's follow the others. */
static void find_angles(struct model_session *s, const struct model_step *step)
{
    size_t boundary = model_rope_boundary(s->model);
    for (size_t i = 0; i < step->n_ranges; i++) {
        const struct kern_query_range *range = &s->ranges[i];
        bool is_long = model_batch_length(step->batch, step->tile.segment + i) > boundary;
        int32_t first = is_long ? (int32_t)s->scratch.n_short : 0;
        for (size_t t = range->q_row; t < range->q_row + range->n_q; t++)
            s->angle_rows[t] = first + s->positions[t];
    }
}

/** One layer over all tiles of the batch. */
static void forward_layer(struct model_session *s, const struct model_batch *batch, size_t i_layer,
                          float *x, struct progress *progress)
{
    const struct model_tile_limits limits = {s->scratch.n_tokens, s->scratch.n_kv_rows};
    struct model_step step = {.i_layer = i_layer,
                              .layer = &s->model->layers[i_layer],
                              .shape = &s->model->hparams.layers[i_layer],
                              .batch = batch};
    size_t segment = 0;
    for (size_t start = 0; start < batch->n_tokens; start += step.tile.n_tokens) {
        step.tile = model_tile_at(batch, &limits, start, segment);
        segment = model_tile_next_segment(batch, &step.tile);
        step.n_ranges = model_tile_ranges(batch, &step.tile, s->ranges, s->positions);
        find_angles(s, &step);
        step.x = step.to = x + start * model_residual_width(&s->model->hparams);
        s->shown = (struct model_shown){
            .layer = (int)i_layer, .first = start, .n_rows = step.tile.n_tokens};
        s->marks = batch->marks ? batch->marks + start : NULL;
        if (narrows(s, &step))
            forward_wanted(s, &step);
        else
            forward_tile(s, &step);
        if (s->failure.status)
            return;
        progress->done++;
        if (s->options.progress)
            s->options.progress(s->options.progress_user, progress->done, progress->total);
    }
}

enum status model_forward(struct model_session *s, const struct model_batch *batch,
                          size_t layer_from, size_t layer_to, float *x, struct status_why *why)
{
    struct model_layer_range own = model_session_layers(s->model, &s->options);
    if (layer_from > layer_to || layer_from < own.from || layer_to > own.to)
        return status_fail(why, STATUS_USAGE,
                           "layers %zu to %zu, expected a range within %zu to %zu", layer_from,
                           layer_to, own.from, own.to);
    enum status status = check_batch(s, batch, why);
    if (!status)
        status = fill_angles(s, why);
    if (status)
        return status;
    const struct model_tile_limits limits = {s->scratch.n_tokens, s->scratch.n_kv_rows};
    struct progress progress = {.total =
                                    (layer_to - layer_from) * model_tile_count(batch, &limits)};
    model_read_ahead(s->model, layer_from);
    s->failure = (struct status_kept){0};
    for (size_t i = layer_from; !s->failure.status && i < layer_to; i++) {
        if (i + 1 < own.to || own.to == s->model->hparams.n_layers)
            model_read_ahead(s->model, i + 1);
        forward_layer(s, batch, i, x, &progress);
    }
    s->marks = NULL;
    return status_of(&s->failure, why);
}

void model_hide(struct model_session *s, const float *x, const uint32_t *rows, size_t n_rows,
                float *hidden)
{
    const struct model *m = s->model;
    model_residual_of(m)->end(s, x, rows, n_rows, hidden);
    if (m->output_norm.gain.data)
        model_normalise_rows(s, &m->output_norm, hidden, n_rows, m->hparams.n_embd);
}

enum status model_hidden(struct model_session *s, const float *x, const uint32_t *rows,
                         size_t n_rows, float *hidden, struct status_why *why)
{
    s->failure = (struct status_kept){0};
    model_hide(s, x, rows, n_rows, hidden);
    return status_of(&s->failure, why);
}
