#include "trace/budget.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/moments.h"
#include "kernels/implementation.h"
#include "kernels/kernels.h"
#include "model/forward/forward.h"
#include "trace/rounded.h"

/** What a window is evaluated with. */
struct room {
    struct model_session *session;
    void *x, *exact, *rounded;         /* backend: [n_inputs, S * D], [n_scored, D] twice */
    int32_t *tokens;                   /* [n_inputs] */
    uint32_t *rows;                    /* [n_scored] */
    struct kern_row_score *row_scores; /* [2, n_scored], and so the pairs */
    struct kern_pair_score *pairs;
};

static enum status make_room(struct room *r, const struct trace_budget_task *t,
                             struct status_why *why)
{
    size_t n_inputs = t->plan->n_inputs, n_scored = t->plan->n_scored;
    const struct model_hparams *h = model_hparams(t->model);
    size_t row = h->n_embd * sizeof(float), wide = model_residual_width(h) * sizeof(float);
    struct model_session_options options = {
        .tile_tokens = n_inputs, .max_batch = n_inputs, .max_segment = n_inputs};
    if (base_array_new(r->tokens, n_inputs, "tokens", why) ||
        base_array_new(r->rows, n_scored, "rows", why) ||
        base_array_new(r->row_scores, 2 * n_scored, "rows", why) ||
        base_array_new(r->pairs, 2 * n_scored, "rows", why))
        return STATUS_MEMORY;
    enum status status = kern_alloc(t->backend, &r->x, n_inputs * wide, why);
    if (!status)
        status = kern_alloc(t->backend, &r->exact, n_scored * row, why);
    if (!status)
        status = kern_alloc(t->backend, &r->rounded, n_scored * row, why);
    return status ? status : model_session_open(&r->session, t->model, t->backend, &options, why);
}

static void free_room(struct room *r, struct kern_backend *backend)
{
    model_session_close(r->session);
    kern_free(backend, r->x);
    kern_free(backend, r->exact);
    kern_free(backend, r->rounded);
    free(r->tokens);
    free(r->rows);
    free(r->row_scores);
    free(r->pairs);
}

/** The hidden rows of the scored positions. */
static enum status evaluate(const struct room *r, const struct trace_budget_task *t, float *hidden,
                            struct status_why *why)
{
    size_t n = t->plan->n_inputs;
    const struct model_segment segment = {.n_tokens = n, .parent = -1};
    const struct model_batch batch = {r->tokens, n, &segment, 1};
    enum status status = model_embed(r->session, &batch, r->x, why);
    if (!status)
        status = model_forward(r->session, &batch, 0, model_hparams(t->model)->n_layers, r->x, why);
    return status ? status
                  : model_hidden(r->session, r->x, r->rows, t->plan->n_scored, hidden, why);
}

static enum status add_pass(struct base_moments *kld, const struct room *r,
                            const struct trace_budget_task *t, uint64_t seed,
                            struct status_why *why)
{
    size_t n = t->plan->n_scored;
    struct kern_head heads[2] = {model_kern_head(t->model), model_kern_head(t->model)};
    heads[0].hidden = r->exact;
    heads[1].hidden = r->rounded;
    struct trace_rounded rounded = {.state = 0};
    trace_rounded_begin(&rounded, t->backend, seed);
    enum status status = evaluate(r, t, r->rounded, why);
    if (!status)
        trace_rounded_input(&rounded, heads[1].matrix, r->rounded, n);
    trace_rounded_end(&rounded);
    struct kern_score score = {
        .n_heads = 2, .heads = heads, .n_rows = n, .rows = r->row_scores, .pairs = r->pairs};
    if (!status)
        status = kern_score(t->backend, &score, why);
    for (size_t i = 0; i < n && !status; i++)
        base_moments_add(kld, r->pairs[n + i].kl);
    return status;
}

static enum status add_window(struct base_moments *kld, struct room *r,
                              const struct trace_budget_task *t, size_t w, struct status_why *why)
{
    for (size_t p = 0; p < t->plan->n_inputs; p++)
        r->tokens[p] = eval_plan_input(t->plan, t->stream, w, p);
    for (size_t i = 0; i < t->plan->n_scored; i++)
        r->rows[i] = (uint32_t)(t->plan->first_scored + i);
    enum status status = evaluate(r, t, r->exact, why);
    for (size_t i = 0; i < t->n_passes && !status; i++)
        status = add_pass(kld, r, t, w * t->n_passes + i + 1, why);
    return status;
}

enum status trace_budget(double *out, const struct trace_budget_task *t, struct status_why *why)
{
    *out = 0;
    if (kern_describe(t->backend).own_memory)
        return status_fail(why, STATUS_USAGE, "roundings are made on a CPU; expected --device cpu");
    struct room room = {0};
    struct base_moments kld = {0};
    enum status status = make_room(&room, t, why);
    for (size_t w = 0; w < t->n_windows && !status; w++)
        status = add_window(&kld, &room, t, w, why);
    free_room(&room, t->backend);
    *out = base_moments_mean(&kld);
    return status;
}
