/* What the scorer makes of windows: scores of tokens, the likeliest ones, divergences. */
#include <stdlib.h>

#include "base/array.h"
#include "clients/library/batches.h"
#include "eval/identity.h"
#include "eval/run.h"
#include "kernels/kernels.h"
#include "model/swap.h"

/** What a call wants of each position. */
struct wanted {
    struct assay_model *candidate; /* NULL: there is none */
    bool tops;                     /* the likeliest tokens, instead of the scores of one */
    const int32_t *targets;        /* NULL: the next tokens of the windows */
    /** Put what items say of a position into the caller's memory. i: among those of all windows;
     * at: among those of the batch. */
    void (*put)(const struct wanted *w, size_t i, const struct eval_items *items, size_t at);
    void *out;
    size_t k; /* of the likeliest */
};

/** A call at work. */
struct scoring {
    struct assay_own_batches batches;
    const struct wanted *wanted;
    size_t n_heads;
    struct eval_scorer *scorer;
    struct kern_target *targets; /* of the batch */
    struct eval_items items;
};

static enum status check_targets(const struct assay_model *m, const struct assay_windows *w,
                                 const struct wanted *wanted, struct status_why *why)
{
    if (wanted->tops)
        return STATUS_OK;
    if (wanted->targets)
        return assay_own_check_ids(m, wanted->targets, w->n_windows * w->n_positions, "a target",
                                   why);
    return w->first + w->n_positions < w->n_tokens
               ? STATUS_OK
               : status_fail(why, STATUS_USAGE,
                             "the last position of a window has no next token; expected fewer "
                             "positions, or targets");
}

static enum status scoring_open(struct scoring *s, struct assay_model *m,
                                const struct assay_windows *windows, struct status_why *why)
{
    enum status status = assay_own_batches_open(&s->batches, m, windows, why);
    if (!status)
        status = check_targets(m, windows, s->wanted, why);
    if (status)
        return status;
    size_t n = assay_own_batches_most(&s->batches), n_scores = s->n_heads * n;
    struct eval_items *items = &s->items;
    status = base_array_new(items->row_scores, n_scores, "positions", why);
    if (!status)
        status = base_array_new(s->targets, n, "positions", why);
    if (!status)
        status = base_array_new(items->target_scores, n_scores, "positions", why);
    if (!status && s->n_heads > 1)
        status = base_array_new(items->pair_scores, n_scores, "positions", why);
    if (!status && s->wanted->tops)
        status = base_array_new(items->tops, n * KERN_TOP_MAX, "positions", why);
    items->rows = s->batches.rows;
    items->targets = s->targets;
    items->want_js = s->n_heads > 1;
    const struct model *const candidate = s->n_heads > 1 ? s->wanted->candidate->model : NULL;
    const struct eval_scorer_options options = {.max_batch = s->batches.most * s->batches.length,
                                                .max_rows = n,
                                                .max_segment = s->batches.length,
                                                .progress = assay_own_batches_progress,
                                                .progress_user = &s->batches,
                                                .candidates = &candidate,
                                                .n_candidates = s->n_heads - 1};
    return status ? status : eval_scorer_open(&s->scorer, m->model, m->backend, &options, why);
}

static void scoring_close(struct scoring *s)
{
    eval_scorer_close(s->scorer);
    free(s->targets);
    free(s->items.row_scores);
    free(s->items.target_scores);
    free(s->items.pair_scores);
    free(s->items.tops);
    assay_own_batches_close(&s->batches);
}

/** The batch's targets. */
static void lay_targets(struct scoring *s)
{
    const struct assay_own_batches *b = &s->batches;
    const struct assay_windows *w = b->windows;
    const int32_t *given = s->wanted->targets;
    for (size_t i = 0; i < s->items.n_rows; i++) {
        size_t window = b->first + i / w->n_positions, p = i % w->n_positions;
        s->targets[i] = (struct kern_target){
            .row = (uint32_t)i,
            .token = given ? given[window * w->n_positions + p]
                           : w->tokens[window * w->n_tokens + w->first + p + 1]};
    }
    s->items.n_targets = s->items.n_rows;
}

static enum status score(struct scoring *s, struct status_why *why)
{
    enum status status = STATUS_OK;
    while (!status && assay_own_batches_next(&s->batches)) {
        s->items.n_rows = assay_own_batches_n(&s->batches);
        if (!s->wanted->tops)
            lay_targets(s);
        status = eval_scorer_run(s->scorer, &s->batches.batch, &s->items, NULL, why);
        for (size_t at = 0; !status && at < s->items.n_rows; at++)
            s->wanted->put(s->wanted, assay_own_batches_before(&s->batches) + at, &s->items, at);
    }
    return status;
}

static enum status run(struct assay_model *m, const struct assay_windows *windows,
                       const struct wanted *wanted, struct status_why *why)
{
    struct scoring s = {.wanted = wanted, .n_heads = wanted->candidate ? 2 : 1};
    enum status status = assay_own_given(wanted->out, "the place of the results", why);
    if (!status)
        status = scoring_open(&s, m, windows, why);
    if (!status)
        status = score(&s, why);
    if (!status)
        status = assay_own_batches_end(&s.batches, why);
    if (!status && wanted->candidate)
        status = model_check_unchanged(wanted->candidate->model, why);
    scoring_close(&s);
    return status;
}

static void put_score(const struct wanted *w, size_t i, const struct eval_items *items, size_t at)
{
    ((struct assay_score *)w->out)[i] = (struct assay_score){
        .log_prob = items->target_scores[at].log_prob,
        .entropy = items->row_scores[at].entropy,
        .rank = items->target_scores[at].rank,
        .likeliest = items->row_scores[at].argmax,
    };
}

enum assay_status assay_log_probs(struct assay_model *model, const struct assay_windows *windows,
                                  const int32_t *targets, struct assay_score *out,
                                  struct assay_why *why)
{
    struct status_why own = {""};
    const struct wanted wanted = {.targets = targets, .put = put_score, .out = out};
    return assay_own_end(run(model, windows, &wanted, &own), &own, why);
}

static void put_tops(const struct wanted *w, size_t i, const struct eval_items *items, size_t at)
{
    struct assay_likely *out = (struct assay_likely *)w->out + i * w->k;
    const struct kern_top *tops = items->tops + at * KERN_TOP_MAX;
    for (size_t k = 0; k < w->k; k++)
        out[k] = (struct assay_likely){.log_prob = tops[k].log_prob, .token = tops[k].token};
}

enum assay_status assay_top(struct assay_model *model, const struct assay_windows *windows,
                            size_t k, struct assay_likely *out, struct assay_why *why)
{
    _Static_assert(ASSAY_TOP_MAX == KERN_TOP_MAX, "the header has the core's number");
    struct status_why own = {""};
    const struct wanted wanted = {.tops = true, .put = put_tops, .out = out, .k = k};
    enum status status =
        k > 0 && k <= ASSAY_TOP_MAX
            ? run(model, windows, &wanted, &own)
            : status_fail(&own, STATUS_USAGE, "k is %zu, expected 1 to %d", k, ASSAY_TOP_MAX);
    return assay_own_end(status, &own, why);
}

static void put_divergence(const struct wanted *w, size_t i, const struct eval_items *items,
                           size_t at)
{
    const struct kern_target_score *q = items->target_scores + items->n_targets;
    const struct kern_row_score *q_row = items->row_scores + items->n_rows;
    const struct kern_pair_score *pair = items->pair_scores + items->n_rows + at;
    ((struct assay_divergence *)w->out)[i] = (struct assay_divergence){
        .base_log_prob = items->target_scores[at].log_prob,
        .log_prob = q[at].log_prob,
        .base_entropy = items->row_scores[at].entropy,
        .entropy = q_row[at].entropy,
        .kld = pair->kl,
        .reverse_kld = pair->reverse_kl,
        .js = pair->js,
        .tv = pair->tv,
        .base_rank = items->target_scores[at].rank,
        .rank = q[at].rank,
        .base_likeliest = items->row_scores[at].argmax,
        .likeliest = q_row[at].argmax,
        .common_1 = pair->common_top[0],
        .common_5 = pair->common_top[1],
        .common_10 = pair->common_top[2],
    };
}

enum assay_status assay_diverge(struct assay_model *base, struct assay_model *candidate,
                                const struct assay_windows *windows, const int32_t *targets,
                                struct assay_divergence *out, struct assay_why *why)
{
    struct status_why own = {""};
    const struct wanted wanted = {
        .candidate = candidate, .targets = targets, .put = put_divergence, .out = out};
    enum status status = assay_own_given(base, "the base", &own);
    if (!status)
        status = assay_own_given(candidate, "the candidate", &own);
    if (!status)
        status = eval_check_same_vocab(base->model, candidate->model, &own);
    if (!status)
        status = run(base, windows, &wanted, &own);
    return assay_own_end(status, &own, why);
}
