#include <string.h>

#include "model/forward/read_ahead.h"
#include "model/forward/session.h"

/** The parts of the work area. Dw: what experts read and write. */
struct moe_work {
    float *logits;       /* [T, E] */
    float *gathered;     /* [T, Dw]: rows for one expert */
    float *result;       /* [T, D]: what the expert makes of them */
    float *narrow, *sum; /* [T, Dw], [T, D] */
    float *branch;       /* [T, D]: before its norm */
    float *dense;        /* [T, D]: what the feed-forward beside them makes */
    float *inner, *up;   /* [T, F] */
};

static struct moe_work divide(struct model_cut *cut, const struct model *m, size_t i_layer,
                              size_t n)
{
    const struct model_hparams *h = &m->hparams;
    const struct model_layer_shape *l = &h->layers[i_layer];
    size_t n_ff = base_max(base_max(l->n_ff_expert, h->experts.n_ff_shared), l->n_ff);
    struct moe_work w = {
        .logits = model_take(cut, n * h->experts.n),
        .gathered = model_take(cut, n * h->n_embd),
        .result = model_take(cut, n * h->n_embd),
        .inner = model_take(cut, n * n_ff),
        .up = model_take(cut, n * n_ff),
    };
    if (h->experts.width)
        w.narrow = model_take(cut, n * h->experts.width);
    if (h->experts.width || m->arch->experts_beside_dense)
        w.sum = model_take(cut, n * h->n_embd);
    if (m->arch->experts_beside_dense)
        w.dense = model_take(cut, n * h->n_embd);
    else if (m->layers[i_layer].ffn_post_norm.gain.data)
        w.branch = model_take(cut, n * h->n_embd);
    return w;
}

/** y = 0, rows of `width`. */
static void clear(struct model_session *s, float *y, size_t width, size_t n)
{
    model_copy(s, (struct kern_copy){.x = s->zeros, .y = y, .width = width, .n_rows = n});
}

size_t model_moe_floats(const struct model *m, size_t i_layer, size_t n_tokens)
{
    struct model_cut cut = {0};
    (void)divide(&cut, m, i_layer, n_tokens);
    return cut.n_floats;
}

/** The tile's rows that chose some experts, by expert and in order, with their shares. */
struct choice {
    uint32_t *rows;
    float *shares;
    size_t n;
};

/** Put rows and shares in the order of their experts. */
static void sort_choices(struct model_session *s, size_t n_tokens, size_t n_used)
{
    const struct model_expert_hparams *h = &s->model->hparams.experts;
    size_t n = n_tokens * n_used, first = 0;
    size_t *ends = s->expert_ends;
    memset(ends, 0, h->n * sizeof *ends);
    for (size_t i = 0; i < n; i++)
        ends[s->experts[i]]++;
    for (size_t e = 0; e < h->n; e++) { /* for now where each begins */
        size_t n_rows = ends[e];
        ends[e] = first;
        first += n_rows;
    }
    for (size_t i = 0; i < n; i++) {
        size_t at = ends[s->experts[i]]++;
        s->expert_rows[at] = (uint32_t)(i / n_used);
        s->expert_shares[at] = s->shares[i];
    }
}

/** Rows and shares of the experts from e to end - 1. */
static struct choice choice_of(const struct model_session *s, size_t e, size_t end)
{
    size_t first = e ? s->expert_ends[e - 1] : 0;
    return (struct choice){s->expert_rows + first, s->expert_shares + first,
                           s->expert_ends[end - 1] - first};
}

/** Let the shares be used up: what the expert reads is multiplied by them. */
static void weigh_inputs(struct model_session *s, float *x, size_t width,
                         const struct choice *choice)
{
    MODEL_TRY(s, kern_scale_rows(s->backend, x, width, choice->n, choice->shares, &s->failure.why));
    for (size_t i = 0; i < choice->n; i++)
        choice->shares[i] = 1;
}

/** What expert e makes of its rows, which are at `at` of w->gathered: the same rows of w->result.
 */
static void inner(struct model_session *s, const struct model_step *step, size_t e, size_t at,
                  const struct moe_work *w)
{
    const struct model_ffn *ffn = &step->layer->experts.each[e];
    const struct model_shown of_tile = s->shown;
    const struct choice choice = choice_of(s, e, e + 1);
    size_t n = choice.n, offset = at * ffn->down.weight.n_rows;
    s->shown.rows = choice.rows;
    s->shown.expert = e;
    s->shown.n_rows = n;
    struct model_ffn_step inner_step = {ffn,
                                        &step->shape->expert_activation,
                                        MODEL_AT_EXPERT_GATE,
                                        w->gathered + offset,
                                        n,
                                        w->inner,
                                        w->up};
    model_ffn_inner(s, &inner_step);
    model_multiply(s, &ffn->down, w->inner, n, w->result + offset);
    model_show(s, MODEL_AT_EXPERT_OUT, w->result + offset, 1, ffn->down.weight.n_rows);
    s->shown = of_tile;
}

/** The experts of the tile's tokens, where their ids say which; NULL: they are chosen. */
static const int32_t *give_experts(const struct model_session *s, const struct model_step *step)
{
    const uint8_t *table = step->layer->experts.by_token;
    const int32_t *tokens = step->batch->tokens + step->tile.start;
    size_t n_used = step->shape->n_experts_used, n_bytes = n_used * sizeof *s->experts;
    for (size_t i = 0; table && i < step->tile.n_tokens; i++)
        memcpy(s->experts + i * n_used, table + (size_t)tokens[i] * n_bytes, n_bytes);
    return table ? s->experts : NULL;
}

/** Which experts each token goes through, with what shares. */
static void route(struct model_session *s, const struct model_step *step, const struct moe_work *w,
                  const float *in)
{
    const struct model_expert_hparams *h = &s->model->hparams.experts;
    const struct model_experts *x = &step->layer->experts;
    size_t n = step->tile.n_tokens;
    struct model_norm_step norm = {.norm = &x->router_norm,
                                   .x = step->x,
                                   .y = w->gathered,
                                   .n_rows = n,
                                   .width = s->model->hparams.n_embd};
    if (x->router_norm.gain.data) {
        model_normalise(s, &norm);
        in = w->gathered;
    }
    model_multiply(s, &x->router, in, n, w->logits);
    struct kern_route op = {.logits = w->logits,
                            .n_tokens = n,
                            .n_experts = h->n,
                            .n_used = step->shape->n_experts_used,
                            .gating = h->gating,
                            .selection_bias = model_present(&x->selection_bias),
                            .given = give_experts(s, step),
                            .n_groups = h->n_groups,
                            .n_groups_used = h->n_groups_used,
                            .groups_by_best = h->groups_by_best,
                            .normalise = h->normalise,
                            .sum_eps = h->sum_eps,
                            .scale = h->scale,
                            .experts = s->experts,
                            .shares = s->shares};
    model_show(s, MODEL_AT_ROUTER, w->logits, 1, h->n);
    MODEL_TRY(s, kern_route(s->backend, &op, &s->failure.why));
    model_show_route(s, step->shape->n_experts_used);
}

/** The first expert from e on that some token has chosen; E where there is none. */
static size_t next_chosen(const struct model_session *s, size_t e)
{
    while (e < s->model->hparams.experts.n && choice_of(s, e, e + 1).n == 0)
        e++;
    return e;
}

/**
 * The end of the experts from e on whose rows are moved together. To a device they go in pieces as
 * large as w->gathered, since a call costs it more than the way through its memory. On the host an
 * expert's rows go by themselves, and stay in its cache.
 */
static size_t end_of_group(const struct model_session *s, size_t e, size_t n_room)
{
    size_t end = e + 1;
    while (s->by_row.ends && end < s->model->hparams.experts.n &&
           choice_of(s, e, end + 1).n <= n_room)
        end++;
    return end;
}

/** The choices by row instead of by expert; those of a row keep their order. */
static void sort_by_row(const struct model_by_row *by_row, const struct choice *choice,
                        size_t n_rows)
{
    size_t *ends = by_row->ends, first = 0;
    memset(ends, 0, n_rows * sizeof *ends);
    for (size_t i = 0; i < choice->n; i++)
        ends[choice->rows[i]]++;
    for (size_t r = 0; r < n_rows; r++) { /* for now where each begins */
        size_t n = ends[r];
        ends[r] = first;
        first += n;
    }
    for (size_t i = 0; i < choice->n; i++) {
        size_t at = ends[choice->rows[i]]++;
        by_row->from[at] = (uint32_t)i;
        by_row->rows[at] = choice->rows[i];
        by_row->shares[at] = choice->shares[i];
    }
}

/** y += the shares of w->result; y: [T, Dw]. */
static void add_results(struct model_session *s, const struct model_step *step,
                        const struct choice *choice, struct kern_scatter *op)
{
    op->n = choice->n;
    op->rows = choice->rows;
    op->shares = choice->shares;
    if (s->by_row.ends) {
        sort_by_row(&s->by_row, choice, step->tile.n_tokens);
        op->from = s->by_row.from;
        op->rows = s->by_row.rows;
        op->shares = s->by_row.shares;
    }
    MODEL_TRY(s, kern_scatter_add(s->backend, op, &s->failure.why));
}

/** Experts whose rows are moved together: from .. end - 1. They read `in` and add to y. */
struct expert_group {
    size_t from, end;
    const float *in;
    float *y;
};

/** Let the experts work on their rows of `in`, and add their shares to y. */
static void apply_group(struct model_session *s, const struct model_step *step,
                        const struct moe_work *w, const struct expert_group *group)
{
    const struct model_ffn *each = step->layer->experts.each;
    const struct choice choice = choice_of(s, group->from, group->end);
    struct kern_scatter op = {
        .x = w->result, .y = group->y, .width = each[group->from].down.weight.n_rows};
    struct kern_gather gather = {group->in, choice.rows, choice.n, op.width, w->gathered};
    MODEL_TRY(s, kern_gather(s->backend, &gather, &s->failure.why));
    if (s->model->arch->weigh_inputs)
        weigh_inputs(s, w->gathered, op.width, &choice);
    for (size_t at = 0, e = group->from, next; !s->failure.status && e < group->end; e = next) {
        next = next_chosen(s, e + 1);
        if (next < s->model->hparams.experts.n)
            model_read_ahead_expert(&each[next]);
        inner(s, step, e, at, w);
        at += choice_of(s, e, e + 1).n;
    }
    add_results(s, step, &choice, &op);
}

/**
 * y += what the chosen experts make of `in`; both [T, Dw]. Ascending: a token's sum over its
 * experts has one order, whatever else is in its tile. The next one is read while one is computed.
 */
static void add_chosen(struct model_session *s, const struct model_step *step,
                       const struct moe_work *w, const float *in, float *y)
{
    size_t n = s->model->hparams.experts.n;
    if (s->failure.status) /* nobody knows which experts were chosen */
        return;
    sort_choices(s, step->tile.n_tokens, step->shape->n_experts_used);
    struct expert_group group = {.from = next_chosen(s, 0), .in = in, .y = y};
    /* Touched, it would bring its neighbours: what the kernel reads around a page. */
    model_read_ahead_expert(&step->layer->experts.each[group.from]);
    for (; !s->failure.status && group.from < n; group.from = next_chosen(s, group.end)) {
        group.end = end_of_group(s, group.from, step->tile.n_tokens);
        apply_group(s, step, w, &group);
    }
}

/** y += the expert that all tokens go through, as much of it as its gate lets pass. */
static void add_shared(struct model_session *s, const struct model_step *step,
                       const struct moe_work *w, const float *in, float *y)
{
    const struct model_experts *x = &step->layer->experts;
    size_t n = step->tile.n_tokens;
    if (!x->shared.up.weight.data)
        return;
    struct model_ffn_step shared = {
        &x->shared, &step->shape->activation, MODEL_AT_SHARED_GATE, in, n, w->inner, w->up};
    model_ffn_inner(s, &shared);
    if (!x->shared_gate.weight.data) {
        model_multiply_add(s, &x->shared.down, w->inner, n, y);
        return;
    }
    model_multiply(s, &x->shared.down, w->inner, n, w->result);
    model_show(s, MODEL_AT_SHARED_OUT, w->result, 1, s->model->hparams.n_embd);
    model_multiply(s, &x->shared_gate, in, n, w->logits);
    /* A router with one expert, whose share is the gate. */
    struct kern_route gate = {.logits = w->logits,
                              .n_tokens = n,
                              .n_experts = 1,
                              .n_used = 1,
                              .gating = KERN_GATE_SIGMOID,
                              .experts = s->experts,
                              .shares = s->expert_shares};
    MODEL_TRY(s, kern_route(s->backend, &gate, &s->failure.why));
    for (size_t i = 0; i < n; i++)
        s->expert_rows[i] = (uint32_t)i;
    struct kern_scatter op = {.x = w->result,
                              .rows = s->expert_rows,
                              .shares = s->expert_shares,
                              .n = n,
                              .width = s->model->hparams.n_embd,
                              .y = y};
    MODEL_TRY(s, kern_scatter_add(s->backend, &op, &s->failure.why));
}

/** Experts that work on narrower rows: y += widen(experts(narrow(in))). */
static void add_narrow(struct model_session *s, const struct model_step *step,
                       const struct moe_work *w, const float *in, float *y)
{
    const struct model_experts *x = &step->layer->experts;
    size_t n = step->tile.n_tokens;
    clear(s, w->sum, s->model->hparams.experts.width, n);
    model_multiply(s, &x->narrow, in, n, w->narrow);
    model_show(s, MODEL_AT_NARROW, w->narrow, 1, s->model->hparams.experts.width);
    add_chosen(s, step, w, w->narrow, w->sum);
    if (x->narrow_norm.gain.data)
        model_normalise_rows(s, &x->narrow_norm, w->sum, n, s->model->hparams.experts.width);
    model_multiply_add(s, &x->widen, w->sum, n, y);
}

void model_block_route(struct model_session *s, const struct model_step *step)
{
    struct model_cut cut = {.base = s->work};
    struct moe_work w = divide(&cut, s->model, step->i_layer, step->tile.n_tokens);
    route(s, step, &w, step->x);
}

void model_block_moe(struct model_session *s, const struct model_step *step)
{
    const struct model_layer *layer = step->layer;
    size_t n = step->tile.n_tokens, width = s->model->hparams.n_embd;
    struct model_cut cut = {.base = s->work};
    struct moe_work w = divide(&cut, s->model, step->i_layer, n);
    const float *in = s->h; /* of parallel branches: what attention read */
    float *y = w.branch ? w.branch : step->to;
    if (w.branch)
        clear(s, y, width, n);
    if (!s->model->hparams.parallel)
        model_branch_input(s, step, &layer->ffn_norm, &in);
    if (!s->model->arch->early_router)
        route(s, step, &w, in);
    if (w.narrow)
        add_narrow(s, step, &w, in, y);
    else
        add_chosen(s, step, &w, in, y);
    add_shared(s, step, &w, in, y);
    if (!w.branch)
        return;
    model_show(s, MODEL_AT_FFN_OUT, y, 1, width);
    struct model_norm_step norm = {.norm = &layer->ffn_post_norm,
                                   .x = y,
                                   .y = step->to,
                                   .n_rows = n,
                                   .width = width,
                                   .accumulate = true};
    model_normalise(s, &norm);
}

/** x += norm(norm(feed-forward(norm x)) + norm(experts(norm x))), each norm with gains of its own.
 */
void model_block_beside(struct model_session *s, const struct model_step *step)
{
    const struct model_layer *layer = step->layer;
    const struct model_experts *x = &layer->experts;
    size_t n = step->tile.n_tokens;
    size_t width = s->model->hparams.n_embd;
    struct model_cut cut = {.base = s->work};
    struct moe_work w = divide(&cut, s->model, step->i_layer, n);
    const float *in;
    model_branch_input(s, step, &layer->ffn_norm, &in);
    struct model_ffn_step ffn = {
        &layer->ffn, &step->shape->activation, MODEL_AT_FFN_GATE, in, n, w.inner, w.up};
    model_ffn_inner(s, &ffn);
    model_multiply(s, &layer->ffn.down, w.inner, n, w.dense);
    model_show(s, MODEL_AT_FFN_OUT, w.dense, 1, width);
    struct model_norm_step norm = {
        .norm = &x->dense_post_norm, .x = w.dense, .y = w.dense, .n_rows = n, .width = width};
    model_normalise(s, &norm);
    model_branch_input(s, step, &x->norm, &in);
    clear(s, w.sum, width, n);
    route(s, step, &w, in);
    add_chosen(s, step, &w, in, w.sum);
    norm.norm = &x->post_norm;
    norm.x = w.sum;
    norm.accumulate = true;
    model_normalise(s, &norm);
    norm.norm = &layer->ffn_post_norm;
    norm.x = w.dense;
    norm.y = step->to;
    model_normalise(s, &norm);
}
