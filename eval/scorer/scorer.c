#include "eval/scorer/scorer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "base/clock.h"
#include "eval/scorer/cost.h"
#include "eval/scorer/cut_head.h"
#include "eval/scorer/shape.h"
#include "kernels/backend.h"
#include "kernels/scoring.h"

/** One of the models that go in step. */
struct runner {
    const struct model *model;
    struct model_session *session;
    struct model_layer_range layers; /* that are evaluated here */
    float *x;                        /* backend: [max_batch, D] */
    float *hidden;                   /* backend: [slab rows, D] */
};

/** What a call of the head gives; arrays by head. */
struct slab {
    struct kern_target *targets; /* [n_targets]: with rows counted from the slab's */
    struct kern_row_score *rows;
    struct kern_target_score *target_scores;
    struct kern_pair_score *pairs;
    size_t n_targets; /* capacity */
};

/** Layers that a forward pass is at, and the arithmetic of one, as if all were alike. */
struct work {
    const struct model_batch *batch;
    size_t n_layers;
    struct eval_cost cost; /* of all layers of the model */
    double share;          /* of one */
};

struct eval_scorer {
    struct kern_backend *backend;
    struct eval_scorer_options options;
    size_t n_models, n_heads;
    struct runner *runners;     /* [n_models]; they are the last of the heads */
    struct eval_pass *passes;   /* [n_models]: of the running batch */
    struct kern_head *heads;    /* [n_heads], the base first */
    struct eval_cut_head *cuts; /* [n_heads] of these */
    struct kern_head *used;     /* the first n_used: those of the running batch that are not idle */
    size_t *used_heads;         /* [n_heads]: which of the heads these are */
    size_t n_used;
    struct eval_row_flow flow;
    struct eval_streams *streams; /* NULL: embeddings enter the layers */
    bool scores;                  /* the last layers are among those that are evaluated here */
    struct slab slab;
    double forward_cost, cost; /* of the running batch: all forward passes, and all */
    double cost_begun;         /* of the passes before the one at work */
    struct work at_work;
};

static void report(const struct eval_scorer *s, double fraction)
{
    if (s->options.progress)
        s->options.progress(s->options.progress_user, fraction);
}

static struct work work_of(const struct model *model, const struct model_batch *batch)
{
    const struct model_hparams *h = model_hparams(model);
    struct work work = {.batch = batch, .share = 1.0 / (h->n_layers + h->n_bound)};
    eval_cost_add(&work.cost, model);
    return work;
}

/** The arithmetic of a layer for the first n_tokens of the batch. */
static double layer_cost(const struct work *work, size_t n_tokens)
{
    double cost = 0;
    for (size_t i = 0; i < work->batch->n_segments && n_tokens > 0; i++) {
        size_t of_segment = base_min(work->batch->segments[i].n_tokens, n_tokens);
        cost += eval_cost_segment(&work->cost, of_segment) * work->share;
        n_tokens -= of_segment;
    }
    return cost;
}

/** The tiles of a layer count as equally long; in a long window the last take most of the time. */
static void on_tile(void *user, size_t done, size_t total)
{
    const struct eval_scorer *s = user;
    const struct work *work = &s->at_work;
    size_t n = work->batch->n_tokens, n_tiles = total / work->n_layers;
    double cost = s->cost_begun + layer_cost(work, n) * (double)(done / n_tiles) +
                  layer_cost(work, done % n_tiles * n / n_tiles);
    report(s, s->cost > 0 ? cost / s->cost : 0);
}

/** Its model is set. */
static enum status runner_open(struct runner *r, struct eval_scorer *s, struct status_why *why)
{
    void *x = NULL, *hidden = NULL;
    enum status status = eval_stream_layers(s->options.streams, r->model, &r->layers, why);
    struct model_session_options session = eval_scorer_session(&s->options, s->backend, r->model);
    session.progress = on_tile;
    session.progress_user = s;
    if (!status)
        status =
            kern_alloc(s->backend, &x, s->options.max_batch * eval_scorer_row_bytes(r->model), why);
    if (!status)
        status = kern_alloc(s->backend, &hidden,
                            eval_scorer_slab_rows(&s->options, s->backend) *
                                eval_scorer_hidden_bytes(r->model),
                            why);
    r->x = x;
    r->hidden = hidden;
    return status ? status : model_session_open(&r->session, r->model, s->backend, &session, why);
}

/** Room for the rows of a slab; that for targets grows with what comes. */
static enum status slab_open(struct eval_scorer *s, struct status_why *why)
{
    size_t n = s->n_heads * eval_scorer_slab_rows(&s->options, s->backend);
    enum status status = base_array_new(s->slab.rows, n, "rows", why);
    return status ? status : base_array_new(s->slab.pairs, n, "rows", why);
}

/** One of the heads, to what all of them have. */
static enum status cut(struct eval_scorer *s, struct kern_head *head, struct status_why *why)
{
    return eval_cut_head(&s->cuts[head - s->heads], head, s->options.n_common, why);
}

/** Sessions of all models, and their heads: with them known, these are brought to the device. */
static enum status runners_open(struct eval_scorer *s, const struct model *model,
                                const struct eval_scorer_options *options, struct status_why *why)
{
    if (options->base && options->base->kind == EVAL_ROWS_HIDDEN)
        s->heads[0].matrix = options->base->head;
    enum status status = cut(s, &s->heads[0], why);
    for (size_t i = 0; i < s->n_models && !status; i++) {
        struct runner *r = &s->runners[i];
        r->model = eval_scorer_model(model, options, i);
        status = runner_open(r, s, why);
        if (status)
            break;
        struct kern_head *head = &s->heads[s->n_heads - s->n_models + i];
        *head = model_kern_head(r->model);
        head->hidden = r->hidden;
        status = cut(s, head, why);
    }
    if (status)
        return status;
    return s->scores ? kern_preload_heads(s->backend, s->heads, s->n_heads, why) : STATUS_OK;
}

/** What enters the layers, and the candidates that come with it. */
static enum status streams_open(struct eval_scorer *s, struct eval_scorer_options *options,
                                struct status_why *why)
{
    const struct eval_stream_source *source = options->streams;
    if (!source || !source->open)
        return STATUS_OK;
    enum status status = source->open(source->user, s->backend, &s->streams, why);
    if (!status && s->streams->candidates)
        options->candidates = s->streams->candidates;
    return status;
}

enum status eval_scorer_open(struct eval_scorer **out, const struct model *model,
                             struct kern_backend *backend,
                             const struct eval_scorer_options *options, struct status_why *why)
{
    *out = NULL;
    struct eval_scorer_options own = *options;
    struct eval_scorer *s = calloc(1, sizeof *s);
    if (!s)
        return status_fail(why, STATUS_MEMORY, "no memory to score with");
    s->backend = backend;
    s->options = *options;
    s->options.candidates = NULL; /* borrowed for this call only */
    s->scores = eval_stream_scores(options->streams, model);
    s->n_models = 1 + options->n_candidates;
    s->n_heads = s->n_models + (options->base ? 1 : 0);
    enum status status = base_array_new(s->runners, s->n_models, "models", why);
    if (!status)
        status = base_array_new(s->heads, s->n_heads, "models", why);
    if (!status)
        status = base_array_new(s->cuts, s->n_heads, "models", why);
    if (!status)
        status = base_array_new(s->used, s->n_heads, "models", why);
    if (!status)
        status = base_array_new(s->used_heads, s->n_heads, "models", why);
    if (!status)
        status = base_array_new(s->passes, s->n_models, "models", why);
    if (!status)
        status = slab_open(s, why);
    struct eval_row_flow_options flow = eval_scorer_flow(model, options, backend);
    if (!status)
        status = eval_row_flow_open(&s->flow, backend, &flow, why);
    if (!status)
        status = streams_open(s, &own, why);
    if (!status)
        status = runners_open(s, model, &own, why);
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
    for (size_t i = 0; s->runners && i < s->n_models; i++) {
        model_session_close(s->runners[i].session);
        kern_free(s->backend, s->runners[i].x);
        kern_free(s->backend, s->runners[i].hidden);
    }
    eval_row_flow_close(&s->flow);
    if (s->streams)
        s->streams->kind->close(s->streams);
    free(s->passes);
    free(s->runners);
    free(s->heads);
    free(s->cuts);
    free(s->used);
    free(s->used_heads);
    free(s->slab.targets);
    free(s->slab.target_scores);
    free(s->slab.rows);
    free(s->slab.pairs);
    free(s);
}

/** The arithmetic of a batch. */
static void estimate(struct eval_scorer *s, const struct model_batch *batch, size_t n_rows)
{
    s->forward_cost = 0;
    s->cost_begun = 0;
    double head = 0;
    for (size_t i = 0; i < s->n_models; i++) {
        const struct runner *r = &s->runners[i];
        struct work work = work_of(r->model, batch);
        size_t n_layers = r->layers.to - r->layers.from + model_hparams(r->model)->n_bound;
        s->forward_cost += layer_cost(&work, batch->n_tokens) * (double)n_layers;
        head += s->scores ? eval_cost_head(r->model, n_rows) : 0;
    }
    s->cost = s->forward_cost + head;
}

/** The slab's targets: n of the items' from `first` on, with their rows counted from `from`. */
static enum status take_targets(struct eval_scorer *s, const struct kern_target *first, size_t n,
                                uint32_t from, struct status_why *why)
{
    struct slab *slab = &s->slab;
    if (n > slab->n_targets) {
        free(slab->targets);
        free(slab->target_scores);
        slab->targets = malloc(n * sizeof *slab->targets);
        slab->target_scores = malloc(s->n_heads * n * sizeof *slab->target_scores);
        slab->n_targets = slab->targets && slab->target_scores ? n : 0;
        if (!slab->n_targets)
            return status_fail(why, STATUS_MEMORY, "no memory for %zu targets", n);
    }
    for (size_t i = 0; i < n; i++)
        slab->targets[i] = (struct kern_target){first[i].row - from, first[i].token};
    return STATUS_OK;
}

/** Where a slab lies in the items. */
struct range {
    size_t row, n_rows, target, n_targets;
};

/** Copy bytes to `to`; without any, which an idle head has, they are 0. */
static void give(void *to, const void *from, size_t n_bytes)
{
    if (from)
        memcpy(to, from, n_bytes);
    else
        memset(to, 0, n_bytes);
}

/** Copy a slab's scores, in which a head has only the slab's rows, to the items'. */
static void give_scores(const struct eval_scorer *s, const struct eval_items *items,
                        const struct range *at)
{
    const struct slab *slab = &s->slab;
    for (size_t h = 0, used = 0; h < s->n_heads; h++) {
        size_t row = h * items->n_rows + at->row;
        size_t target = h * items->n_targets + at->target;
        bool is_idle = used == s->n_used || s->used_heads[used] != h;
        const struct kern_row_score *rows = slab->rows + used * at->n_rows;
        const struct kern_pair_score *pairs = slab->pairs + used * at->n_rows;
        give(items->row_scores + row, is_idle ? NULL : rows, at->n_rows * sizeof *rows);
        if (items->pair_scores)
            give(items->pair_scores + row, is_idle ? NULL : pairs, at->n_rows * sizeof *pairs);
        if (at->n_targets)
            give(items->target_scores + target,
                 is_idle ? NULL : slab->target_scores + used * at->n_targets,
                 at->n_targets * sizeof *slab->target_scores);
        used += !is_idle;
    }
}

/** Which heads the running batch has. */
static void use_heads(struct eval_scorer *s)
{
    size_t n_rows_alone = s->n_heads - s->n_models; /* of a base that is no model */
    s->n_used = 0;
    for (size_t h = 0; h < s->n_heads; h++)
        if (h < n_rows_alone || !s->passes[h - n_rows_alone].is_idle)
            s->used_heads[s->n_used++] = h;
    assert(s->used_heads[0] == 0);
}

/** Score the rows at->row .. of the items, whose targets begin at at->target. */
static enum status score_slab(struct eval_scorer *s, const struct eval_items *items,
                              struct range *at, struct status_why *why)
{
    size_t end = at->target;
    while (end < items->n_targets && items->targets[end].row < at->row + at->n_rows)
        end++;
    at->n_targets = end - at->target;
    enum status status =
        take_targets(s, items->targets + at->target, at->n_targets, (uint32_t)at->row, why);
    for (size_t i = 0; i < s->n_models && !status; i++) {
        struct runner *r = &s->runners[i];
        if (s->passes[i].is_idle)
            continue;
        status = model_hidden(r->session, r->x, items->rows + at->row, at->n_rows, r->hidden, why);
    }
    const struct eval_row_source *base = s->flow.source;
    size_t plan_row = items->plan_rows ? items->plan_rows[at->row] : 0;
    if (!status && base)
        status = eval_row_flow_take(&s->flow, plan_row, at->n_rows, &s->heads[0], why);
    if (!status && base)
        status = cut(s, &s->heads[0], why);
    if (!status && s->flow.sink)
        status = eval_row_flow_give(&s->flow, plan_row, at->n_rows,
                                    &s->heads[s->n_heads - s->n_models], why);
    if (status)
        return status;
    for (size_t i = 0; i < s->n_used; i++)
        s->used[i] = s->heads[s->used_heads[i]];
    struct kern_score op = {
        .n_heads = s->n_used,
        .heads = s->used,
        .n_rows = at->n_rows,
        .n_targets = at->n_targets,
        .targets = s->slab.targets,
        .rows = s->slab.rows,
        .target_scores = s->slab.target_scores,
        .pairs = items->pair_scores ? s->slab.pairs : NULL,
        .want_js = items->want_js,
        .tops = items->tops ? items->tops + at->row * KERN_TOP_MAX : NULL,
    };
    status = kern_score(s->backend, &op, why);
    if (!status && base && base->check)
        status = base->check(base->user, plan_row, at->n_rows, s->slab.rows, why);
    if (!status)
        give_scores(s, items, at);
    return status;
}

/** Rows from `row` on that lie one after the other among the plan's, `most` of them at most. */
static size_t run_of_rows(const struct eval_items *items, size_t row, size_t most)
{
    size_t left = items->n_rows - row;
    most = left < most ? left : most;
    size_t n = 1;
    while (n < most &&
           (!items->plan_rows || items->plan_rows[row + n] == items->plan_rows[row] + n))
        n++;
    return n;
}

/** Tell the source of all the batch's rows. */
static void expect_rows(const struct eval_scorer *s, const struct eval_items *items)
{
    const struct eval_row_source *base = s->flow.source;
    if (!base || !base->expect)
        return;
    for (size_t row = 0, n; row < items->n_rows; row += n) {
        n = run_of_rows(items, row, items->n_rows);
        base->expect(base->user, items->plan_rows[row], n);
    }
}

/** The layer at which the streams are to see pass i next. */
static size_t next_layer(const struct eval_scorer *s, size_t i)
{
    size_t last = s->runners[i].layers.to;
    if (!s->streams || !s->streams->kind->next)
        return last;
    return base_min(s->streams->kind->next(s->streams, s->passes, i), last);
}

/** A model's residual stream through the layers that are left of its pass. */
static enum status forward_one(struct eval_scorer *s, size_t i, struct status_why *why)
{
    const struct runner *r = &s->runners[i];
    struct eval_pass *pass = &s->passes[i];
    s->at_work = work_of(r->model, pass->batch);
    double of_layer = layer_cost(&s->at_work, pass->batch->n_tokens);
    enum status status = STATUS_OK;
    if (pass->layer == 0)
        status = model_embed(r->session, pass->batch, r->x, why);
    s->cost_begun += of_layer * (double)(pass->layer - r->layers.from);
    while (pass->layer < r->layers.to && !status) {
        size_t next = next_layer(s, i);
        s->at_work.n_layers = next - pass->layer;
        status = model_forward(r->session, pass->batch, pass->layer, next, r->x, why);
        s->cost_begun += of_layer * (double)s->at_work.n_layers;
        pass->layer = next;
        if (!status && s->streams)
            status = s->streams->kind->reach(s->streams, s->passes, s->n_models, i, why);
    }
    return status;
}

static enum status forward(struct eval_scorer *s, const struct model_batch *batch, size_t variant,
                           struct status_why *why)
{
    struct eval_streams *streams = s->streams;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < s->n_models; i++)
        s->passes[i] = (struct eval_pass){.model = s->runners[i].model,
                                          .backend = s->backend,
                                          .batch = batch,
                                          .x = s->runners[i].x};
    if (streams && streams->kind->select)
        status = streams->kind->select(streams, variant, why);
    if (streams && !status)
        status = streams->kind->enter(streams, s->passes, s->n_models, why);
    for (size_t i = 0; i < s->n_models && !status; i++)
        status = forward_one(s, i, why);
    return status;
}

enum status eval_scorer_run(struct eval_scorer *s, const struct model_batch *batch,
                            const struct eval_items *items, struct eval_scorer_times *times,
                            struct status_why *why)
{
    assert(items->plan_rows || (!s->flow.source && !s->flow.sink));
    estimate(s, batch, items->n_rows);
    expect_rows(s, items);
    double started = base_clock_seconds();
    enum status status = forward(s, batch, items->variant, why);
    double forwarded = base_clock_seconds();
    struct range at = {0};
    use_heads(s);
    while (at.row < items->n_rows && !status && s->scores) {
        at.n_rows = run_of_rows(items, at.row, eval_scorer_slab_rows(&s->options, s->backend));
        status = score_slab(s, items, &at, why);
        at.row += at.n_rows;
        at.target += at.n_targets;
        double scored = (double)at.row / (double)items->n_rows;
        report(s, (s->forward_cost + (s->cost - s->forward_cost) * scored) / s->cost);
    }
    if (times) {
        times->forward += forwarded - started;
        times->head += base_clock_seconds() - forwarded;
    }
    return status;
}
