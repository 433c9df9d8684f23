#include "eval/scorer.h"

#include <stdlib.h>

#include "eval/clock.h"
#include "eval/cost.h"

struct eval_scorer {
    const struct model *model;
    struct kern_backend *backend;
    struct eval_scorer_options options;
    struct model_session *session;
    float *x;                         /* backend: [max_batch, D] */
    float *hidden;                    /* backend: [slab_rows(), D] */
    struct kern_target *slab_targets; /* [capacity]: targets with rows counted from the slab's */
    size_t slab_targets_capacity;
    double forward_share; /* of the running batch's arithmetic */
};

static size_t row_bytes(const struct model *model)
{
    return (size_t)model_hparams(model)->n_embd * sizeof(float);
}

static size_t slab_rows(const struct eval_scorer_options *options)
{
    return options->max_rows < EVAL_SLAB_ROWS ? options->max_rows : EVAL_SLAB_ROWS;
}

static struct model_session_options session_options(const struct eval_scorer_options *options)
{
    return (struct model_session_options){
        .tile_tokens = options->tile_tokens ? options->tile_tokens : EVAL_TILE_TOKENS,
        .max_batch = options->max_batch,
        .max_segment = options->max_segment,
    };
}

static void report(const struct eval_scorer *s, double fraction)
{
    if (s->options.progress)
        s->options.progress(s->options.progress_user, fraction);
}

static void on_tile(void *user, size_t done, size_t total)
{
    const struct eval_scorer *s = user;
    report(s, s->forward_share * (double)done / (double)total);
}

static size_t product_bytes(struct kern_backend *backend, const struct kern_weight *weight,
                            size_t n_tokens)
{
    struct kern_linear op = {.weight = weight, .n_tokens = n_tokens};
    return weight->data ? kern_linear_bytes(backend, &op) : 0;
}

/** The most that the backend takes for one of the model's products or a slab's scores. */
static size_t operation_bytes(const struct model *model, struct kern_backend *backend,
                              size_t n_tokens, size_t n_rows)
{
    struct kern_head head = {.matrix = model_head(model)};
    struct kern_score score = {.n_heads = 1, .heads = &head, .n_rows = n_rows, .n_targets = n_rows};
    size_t most = kern_score_bytes(backend, &score);
    for (uint32_t i = 0; i < model_hparams(model)->n_layers; i++) {
        const struct model_layer *layer = model_layer(model, i);
        const struct kern_weight *const weights[] = {
            &layer->q,      &layer->k,           &layer->v,         &layer->output,
            &layer->router, &layer->ffn[0].gate, &layer->ffn[0].up, &layer->ffn[0].down};
        for (size_t k = 0; k < sizeof weights / sizeof *weights; k++) {
            size_t n = product_bytes(backend, weights[k], n_tokens);
            most = n > most ? n : most;
        }
    }
    return most;
}

double eval_scorer_bytes(const struct model *model, struct kern_backend *backend,
                         const struct eval_scorer_options *options)
{
    struct model_session_options session = session_options(options);
    size_t n_tokens =
        session.tile_tokens < session.max_batch ? session.tile_tokens : session.max_batch;
    double rows = (double)options->max_batch + (double)slab_rows(options);
    return rows * (double)row_bytes(model) + (double)model_session_bytes(model, &session) +
           (double)operation_bytes(model, backend, n_tokens, slab_rows(options));
}

enum status eval_scorer_open(struct eval_scorer **out, const struct model *model,
                             struct kern_backend *backend,
                             const struct eval_scorer_options *options, struct status_why *why)
{
    *out = NULL;
    struct eval_scorer *s = calloc(1, sizeof *s);
    if (!s)
        return status_fail(why, STATUS_MEMORY, "no memory to score with");
    s->model = model;
    s->backend = backend;
    s->options = *options;
    struct model_session_options session = session_options(options);
    session.progress = on_tile;
    session.progress_user = s;
    void *x = NULL, *hidden = NULL;
    enum status status = kern_alloc(backend, &x, options->max_batch * row_bytes(model), why);
    if (!status)
        status = kern_alloc(backend, &hidden, slab_rows(options) * row_bytes(model), why);
    s->x = x;
    s->hidden = hidden;
    if (!status)
        status = model_session_open(&s->session, model, backend, &session, why);
    if (status) {
        eval_scorer_close(s);
        return status;
    }
    *out = s;
    return STATUS_OK;
}

void eval_scorer_close(struct eval_scorer *s)
{
    if (!s)
        return;
    model_session_close(s->session);
    kern_free(s->backend, s->x);
    kern_free(s->backend, s->hidden);
    free(s->slab_targets);
    free(s);
}

/** Arithmetic of a batch's layers; sets the share that they have of the whole. */
static void estimate(struct eval_scorer *s, const struct model_batch *batch, size_t n_rows)
{
    double forward = 0;
    for (size_t i = 0; i < batch->n_segments; i++)
        forward += eval_cost_forward(s->model, batch->segments[i].n_tokens);
    double head = eval_cost_head(s->model, n_rows);
    s->forward_share = forward + head > 0 ? forward / (forward + head) : 0;
}

/** The targets of [first, last), with their rows counted from `from`. */
static enum status rebase_targets(struct eval_scorer *s, const struct kern_target *first, size_t n,
                                  uint32_t from, struct status_why *why)
{
    if (n > s->slab_targets_capacity) {
        free(s->slab_targets);
        s->slab_targets = malloc(n * sizeof *s->slab_targets);
        s->slab_targets_capacity = s->slab_targets ? n : 0;
        if (!s->slab_targets)
            return status_fail(why, STATUS_MEMORY, "no memory for %zu targets", n);
    }
    for (size_t i = 0; i < n; i++)
        s->slab_targets[i] = (struct kern_target){first[i].row - from, first[i].token};
    return STATUS_OK;
}

/** Rows [from, from + n) of the items, whose targets begin at index t; moves t past them. */
static enum status score_slab(struct eval_scorer *s, const struct eval_items *items, size_t from,
                              size_t n, size_t *t, struct status_why *why)
{
    size_t first = *t;
    while (*t < items->n_targets && items->targets[*t].row < from + n)
        ++*t;
    enum status status = rebase_targets(s, items->targets + first, *t - first, (uint32_t)from, why);
    if (!status)
        status = model_hidden(s->session, s->x, items->rows + from, n, s->hidden, why);
    if (status)
        return status;
    struct kern_head head = {.hidden = s->hidden, .matrix = model_head(s->model)};
    struct kern_score op = {
        .n_heads = 1,
        .heads = &head,
        .n_rows = n,
        .n_targets = *t - first,
        .targets = s->slab_targets,
        .rows = items->row_scores + from,
        .target_scores = items->target_scores + first,
    };
    return kern_score(s->backend, &op, why);
}

enum status eval_scorer_run(struct eval_scorer *s, const struct model_batch *batch,
                            const struct eval_items *items, struct eval_scorer_times *times,
                            struct status_why *why)
{
    estimate(s, batch, items->n_rows);
    double started = eval_clock_seconds();
    enum status status = model_embed(s->session, batch, s->x, why);
    if (!status)
        status = model_forward(s->session, batch, 0, model_hparams(s->model)->n_layers, s->x, why);
    double forwarded = eval_clock_seconds();
    size_t t = 0;
    for (size_t from = 0; from < items->n_rows && !status; from += EVAL_SLAB_ROWS) {
        size_t left = items->n_rows - from;
        size_t n = left < EVAL_SLAB_ROWS ? left : EVAL_SLAB_ROWS;
        status = score_slab(s, items, from, n, &t, why);
        double scored = (double)(from + n) / (double)items->n_rows;
        report(s, s->forward_share + (1 - s->forward_share) * scored);
    }
    if (times) {
        times->forward += forwarded - started;
        times->head += eval_clock_seconds() - forwarded;
    }
    return status;
}
