#include "clients/probe/exact/exact.h"

#include <math.h>
#include <stdlib.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "clients/activations/rounding.h"
#include "clients/trace/rounded.h"
#include "kernels/kernels.h"

/** Logits that are in memory at a time. */
enum { SLAB_LOGITS = 16 << 20 };

struct pass {
    const struct probe_evaluation *e;
    struct model_session *session;
    float *x, *hidden, *logits; /* backend: [T, D], [slab, D], [slab, V] */
    size_t n_vocab, width, slab;
    char *listed; /* [V]: of the want at work */
};

static enum status open_pass(struct pass *p, struct status_why *why)
{
    const struct probe_evaluation *e = p->e;
    const struct model_hparams *h = model_hparams(e->model);
    struct model_session_options options = {.max_batch = e->n_tokens,
                                            .max_segment = e->n_tokens,
                                            .progress = e->progress,
                                            .progress_user = e->progress_user,
                                            .trace = e->ties ? probe_ties_shown : NULL,
                                            .trace_user = e->ties};
    void *x = NULL, *hidden = NULL, *logits = NULL;
    p->n_vocab = h->n_vocab;
    p->width = h->n_embd;
    p->slab = base_min(base_max((size_t)SLAB_LOGITS / p->n_vocab, 1), e->n_tokens);
    enum status status = base_array_new(p->listed, p->n_vocab, "tokens", why);
    if (!status)
        status =
            kern_alloc(e->backend, &x, e->n_tokens * model_residual_width(h) * sizeof(float), why);
    if (!status)
        status = kern_alloc(e->backend, &hidden, p->slab * p->width * sizeof(float), why);
    if (!status)
        status = kern_alloc(e->backend, &logits, p->slab * p->n_vocab * sizeof(float), why);
    p->x = x;
    p->hidden = hidden;
    p->logits = logits;
    return status ? status : model_session_open(&p->session, e->model, e->backend, &options, why);
}

static void close_pass(struct pass *p)
{
    model_session_close(p->session);
    kern_free(p->e->backend, p->x);
    kern_free(p->e->backend, p->hidden);
    kern_free(p->e->backend, p->logits);
    free(p->listed);
}

static enum status forward(struct pass *p, struct status_why *why)
{
    const struct probe_evaluation *e = p->e;
    const struct model_segment segment = {.n_tokens = e->n_tokens, .parent = -1};
    const struct model_batch batch = {e->tokens, e->n_tokens, &segment, 1};
    enum status status = model_embed(p->session, &batch, p->x, why);
    if (!status)
        status = model_forward(p->session, &batch, 0, model_hparams(e->model)->n_layers, p->x, why);
    if (!status && e->ties && e->ties->status)
        status = status_fail(why, STATUS_MEMORY, "no memory for the experts of a window");
    return status;
}

/** Take what is wanted from a row of logits. */
static enum status pick(struct pass *p, struct probe_want *want, const float *logits,
                        struct status_why *why)
{
    const double none = (double)INFINITY;
    double most = -none, sum = 0;
    struct probe_unlisted missing = {-none, none};
    for (size_t i = 0; i < p->n_vocab; i++)
        most = fmax(most, (double)logits[i]);
    for (size_t i = 0; i < p->n_vocab; i++)
        sum += exp((double)logits[i] - most);
    double log_sum = most + log(sum);
    if (!isfinite(log_sum))
        return status_fail(why, STATUS_NONFINITE,
                           "the model's prediction after %zu tokens is not finite", want->row + 1);
    for (size_t i = 0; i < want->n; i++) {
        want->log_p[i] = (double)logits[want->ids[i]] - log_sum;
        p->listed[want->ids[i]] = 1;
    }
    for (size_t i = 0; i < p->n_vocab; i++)
        if (!p->listed[i]) {
            missing.most = fmax(missing.most, (double)logits[i]);
            missing.least = fmin(missing.least, (double)logits[i]);
        }
    for (size_t i = 0; i < want->n; i++)
        p->listed[want->ids[i]] = 0;
    want->unlisted = (struct probe_unlisted){
        missing.most - log_sum, missing.least < none ? missing.least - log_sum : -none};
    return STATUS_OK;
}

/** The logits of n rows. */
static enum status head(struct pass *p, const uint32_t *rows, size_t n, struct status_why *why)
{
    struct kern_head from = model_kern_head(p->e->model);
    struct kern_linear product = {.weight = from.matrix,
                                  .bias = from.bias,
                                  .x = p->hidden,
                                  .y = p->logits,
                                  .y_stride = p->n_vocab,
                                  .n_tokens = n};
    enum status status = model_hidden(p->session, p->x, rows, n, p->hidden, why);
    if (!status)
        status = kern_linear(p->e->backend, &product, why);
    for (size_t i = 0; !status && from.soft_cap > 0 && i < n * p->n_vocab; i++)
        p->logits[i] = from.soft_cap * tanhf(p->logits[i] / from.soft_cap);
    return status;
}

/** Rows that are wanted, each once, slab by slab. */
static enum status score(struct pass *p, struct probe_want *wants, size_t n_wants,
                         struct status_why *why)
{
    uint32_t *rows;
    enum status status = base_array_new(rows, p->slab, "rows", why);
    for (size_t begin = 0, end; begin < n_wants && !status; begin = end) {
        size_t n = 0;
        for (end = begin; end < n_wants; end++) {
            bool is_new = end == begin || wants[end].row != wants[end - 1].row;
            if (is_new && n == p->slab)
                break;
            if (is_new)
                rows[n++] = (uint32_t)wants[end].row;
        }
        status = head(p, rows, n, why);
        size_t at = 0;
        for (size_t i = begin; i < end && !status; i++) {
            at += i > begin && wants[i].row != wants[i - 1].row;
            status = pick(p, &wants[i], p->logits + at * p->n_vocab, why);
        }
    }
    free(rows);
    return status;
}

/** From now on inputs of products are rounded as llama.cpp rounds them on a CPU. */
static enum status simulate(struct act_rounding **out, const struct probe_evaluation *e,
                            struct status_why *why)
{
    const struct act_rule rule = {.engine = ACT_LLAMA_CPU};
    enum status status = act_rounding_open(out, &rule, &e->backend, 1, why);
    return status ? status : act_rounding_add(*out, model_file(e->model), why);
}

enum status probe_evaluate(const struct probe_evaluation *e, struct probe_want *wants,
                           size_t n_wants, struct status_why *why)
{
    static const enum trace_arithmetic kinds[] = {[PROBE_EXACT] = TRACE_AS_LLAMA,
                                                  [PROBE_AS_LLAMA] = TRACE_AS_LLAMA,
                                                  [PROBE_BFLOAT16] = TRACE_BFLOAT16,
                                                  [PROBE_COARSE] = TRACE_COARSE,
                                                  [PROBE_SMALL_CACHE] = TRACE_SMALL_CACHE};
    struct pass p = {.e = e};
    struct trace_rounded rounded = {.arithmetic = kinds[e->rounding]};
    struct act_rounding *simulation = NULL;
    bool rounds = e->rounding != PROBE_EXACT, simulates = e->rounding == PROBE_SIMULATED;
    enum status status = STATUS_OK;
    if (e->ties)
        status = probe_ties_begin(e->ties, e->model, e->n_tokens, rounds, why);
    if (!status)
        status = open_pass(&p, why);
    if (!status && simulates)
        status = simulate(&simulation, e, why);
    if (!status && rounds && !simulates)
        trace_rounded_begin(&rounded, e->backend, e->seed);
    if (!status)
        status = forward(&p, why);
    if (!status)
        status = score(&p, wants, n_wants, why);
    trace_rounded_end(&rounded);
    act_rounding_close(simulation);
    close_pass(&p);
    return status;
}
