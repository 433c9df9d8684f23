#include "clients/draft/draft.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/implementation.h"

enum { LOGITS_BYTES = 64 << 20 }; /* of both distributions' rows at a time */

struct draft_session {
    struct draft_options options;
    size_t n_embd, n_vocab, n_layers;
    size_t n_rows;                      /* of logits at a time */
    struct model_session *main, *block; /* all layers; the one after them */
    /* Backend memory. [max_tokens, D]: the residual stream, then the block's hidden rows; the
     * model's; the block's stream. [2, n_rows, V]. */
    float *x, *hidden, *stream, *logits;
    float *host;   /* [2, n_rows, V] */
    uint32_t *all; /* 0, 1, 2, ... */
};

static float capped(float logit, float soft_cap)
{
    return soft_cap > 0 ? soft_cap * tanhf(logit / soft_cap) : logit;
}

/** Maximum and ln sum exp of logits; the first of the largest. */
static double log_sum(const float *logits, size_t n, float soft_cap, size_t *top)
{
    *top = 0;
    for (size_t i = 1; i < n; i++)
        if (logits[i] > logits[*top])
            *top = i;
    double most = (double)capped(logits[*top], soft_cap), sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += exp((double)capped(logits[i], soft_cap) - most);
    return most + log(sum);
}

bool draft_compare(const float *p, const float *q, size_t n_vocab, float soft_cap, int32_t target,
                   struct draft_position *out)
{
    size_t p_top, q_top;
    double p_sum = log_sum(p, n_vocab, soft_cap, &p_top);
    double q_sum = log_sum(q, n_vocab, soft_cap, &q_top);
    *out = (struct draft_position){
        .guess = (int32_t)q_top,
        .hits = (int32_t)q_top == target,
        .agrees = q_top == p_top,
        .guess_prob = exp((double)capped(p[q_top], soft_cap) - p_sum),
        .log_p = (double)capped(p[target], soft_cap) - p_sum,
        .log_q = (double)capped(q[target], soft_cap) - q_sum,
    };
    for (size_t i = 0; i < n_vocab; i++)
        out->accepted += exp(
            fmin((double)capped(p[i], soft_cap) - p_sum, (double)capped(q[i], soft_cap) - q_sum));
    return isfinite(p_sum) && isfinite(q_sum);
}

static enum status allocate(struct draft_session *s, struct status_why *why)
{
    struct kern_backend *b = s->options.backend;
    size_t rows = s->options.max_tokens * s->n_embd * sizeof(float);
    size_t logits = 2 * s->n_rows * s->n_vocab * sizeof(float);
    void *memory[4] = {NULL};
    const size_t n_bytes[4] = {rows, rows, rows, logits};
    enum status status = STATUS_OK;
    for (size_t i = 0; i < 4 && !status; i++)
        status = kern_alloc(b, &memory[i], n_bytes[i], why);
    s->x = memory[0];
    s->hidden = memory[1];
    s->stream = memory[2];
    s->logits = memory[3];
    s->host = malloc(logits);
    s->all = malloc(s->options.max_tokens * sizeof *s->all);
    if (!status && (!s->host || !s->all))
        return status_fail(why, STATUS_MEMORY, "no memory for %zu bytes of logits", logits);
    for (size_t i = 0; s->all && i < s->options.max_tokens; i++)
        s->all[i] = (uint32_t)i;
    return status;
}

enum status draft_open(struct draft_session **out, const struct draft_options *options,
                       struct status_why *why)
{
    struct draft_session *s = *out = calloc(1, sizeof *s);
    if (!s)
        return status_fail(why, STATUS_MEMORY, "no memory for a session");
    const struct model_hparams *h = model_hparams(options->model);
    s->options = *options;
    s->n_embd = h->n_embd;
    s->n_vocab = h->n_vocab;
    s->n_layers = h->n_layers;
    size_t fit = LOGITS_BYTES / (2 * s->n_vocab * sizeof(float));
    s->n_rows = fit < 1 ? 1 : fit < options->max_tokens ? fit : options->max_tokens;
    enum status status = allocate(s, why);
    struct model_session_options session = {.max_batch = options->max_tokens,
                                            .max_segment = options->max_tokens};
    if (!status)
        status = model_session_open(&s->main, options->model, options->backend, &session, why);
    session.layers = (struct model_layer_range){s->n_layers, s->n_layers + 1};
    if (!status)
        status = model_session_open(&s->block, options->model, options->backend, &session, why);
    if (status) {
        draft_close(s);
        *out = NULL;
    }
    return status;
}

void draft_close(struct draft_session *s)
{
    if (!s)
        return;
    struct kern_backend *b = s->options.backend;
    model_session_close(s->main);
    model_session_close(s->block);
    kern_free(b, s->x);
    kern_free(b, s->hidden);
    kern_free(b, s->stream);
    kern_free(b, s->logits);
    free(s->host);
    free(s->all);
    free(s);
}

/** Hidden rows of the model, and of the block in x: x[i] belongs to hidden[i + 1]. */
static enum status forward(struct draft_session *s, const int32_t *tokens, size_t n,
                           struct status_why *why)
{
    const struct model_segment whole = {.n_tokens = n, .parent = -1};
    const struct model_batch batch = {tokens, n, &whole, 1};
    enum status status = model_embed(s->main, &batch, s->x, why);
    if (!status)
        status = model_forward(s->main, &batch, 0, s->n_layers, s->x, why);
    if (!status)
        status = model_hidden(s->main, s->x, s->all, n, s->hidden, why);
    const struct model_segment after = {.n_tokens = n - 1, .parent = -1};
    const struct model_batch next = {tokens + 1, n - 1, &after, 1};
    if (!status)
        status = model_nextn_enter(s->block, &next, s->all, s->x, s->stream, why);
    if (!status)
        status = model_forward(s->block, &next, s->n_layers, s->n_layers + 1, s->stream, why);
    return status ? status : model_nextn_hidden(s->block, s->stream, n - 1, s->x, why);
}

static enum status multiply(struct draft_session *s, struct kern_head head, const float *hidden,
                            size_t n, float *logits, struct status_why *why)
{
    const struct kern_linear op = {.weight = head.matrix,
                                   .bias = head.bias,
                                   .x = hidden,
                                   .y = logits,
                                   .y_stride = s->n_vocab,
                                   .n_tokens = n};
    return kern_linear(s->options.backend, &op, why);
}

/** Rows that are compared side by side. */
struct comparison {
    const struct draft_session *s;
    const int32_t *targets;
    struct draft_position *out;
    atomic_bool nonfinite;
};

static void compare_row(void *context, size_t i, unsigned thread)
{
    (void)thread;
    struct comparison *c = context;
    const float *p = c->s->host + i * c->s->n_vocab;
    const float *q = p + c->s->n_rows * c->s->n_vocab;
    float soft_cap = model_hparams(c->s->options.model)->logit_soft_cap;
    if (!draft_compare(p, q, c->s->n_vocab, soft_cap, c->targets[i], &c->out[i]))
        atomic_store(&c->nonfinite, true);
}

/** Logits of n rows of the model, from position on, and of the block; both to the host. */
static enum status make_logits(struct draft_session *s, size_t position, size_t n,
                               struct status_why *why)
{
    size_t half = s->n_rows * s->n_vocab, n_bytes = n * s->n_vocab * sizeof(float);
    enum status status = multiply(s, model_kern_head(s->options.model),
                                  s->hidden + position * s->n_embd, n, s->logits, why);
    if (!status)
        status = multiply(s, model_nextn_head(s->options.model), s->x + (position - 1) * s->n_embd,
                          n, s->logits + half, why);
    if (!status)
        status = kern_download(s->options.backend, s->host, s->logits, n_bytes, why);
    return status
               ? status
               : kern_download(s->options.backend, s->host + half, s->logits + half, n_bytes, why);
}

static enum status check_targets(const struct draft_session *s, const int32_t *targets, size_t n,
                                 struct status_why *why)
{
    for (size_t i = 0; i < n; i++)
        if (targets[i] < 0 || (size_t)targets[i] >= s->n_vocab)
            return status_fail(why, STATUS_USAGE, "target %zu is %d, expected 0 to %zu", i,
                               targets[i], s->n_vocab - 1);
    return STATUS_OK;
}

enum status draft_evaluate(struct draft_session *s, const struct draft_window *w,
                           struct status_why *why)
{
    size_t n = w->n, first = w->first;
    if (first < 1 || first >= n || n > s->options.max_tokens)
        return status_fail(why, STATUS_USAGE,
                           "positions %zu to %zu of a window of %zu, expected some from 1 on, and "
                           "at most %zu",
                           first, n, n, s->options.max_tokens);
    enum status status = check_targets(s, w->targets, n - first, why);
    if (!status)
        status = forward(s, w->tokens, n, why);
    for (size_t at = first; at < n && !status; at += s->n_rows) {
        size_t n_rows = n - at < s->n_rows ? n - at : s->n_rows;
        struct comparison c = {
            .s = s, .targets = w->targets + at - first, .out = w->positions + at - first};
        status = make_logits(s, at, n_rows, why);
        if (!status)
            status = base_pool_run(s->options.pool, n_rows, compare_row, &c, NULL);
        if (!status && atomic_load(&c.nonfinite))
            status = status_fail(why, STATUS_NONFINITE,
                                 "a prediction at position %zu or after it is not finite", at);
    }
    return status;
}
