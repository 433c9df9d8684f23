#include "clients/trace/trace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "clients/trace/rounded.h"
#include "kernels/implementation.h"
#include "kernels/kernels.h"

/** What is at work: the first pass collects, the others compare with it. */
struct collector {
    struct trace *trace;
    const struct trace_task *task;
    bool collects;
    int32_t *experts; /* [T, used] of the layer, by this pass */
    size_t n_used, experts_capacity;
    enum status status;
    struct status_why *why;
};

const struct trace_tensor *trace_find(const struct trace *trace, enum model_place place, int layer)
{
    for (size_t i = 0; i < trace->n; i++)
        if (trace->items[i].place == place && trace->items[i].layer == layer)
            return &trace->items[i];
    return NULL;
}

static enum status make_tensor(struct collector *c, const struct model_shown *shown,
                               struct status_why *why)
{
    struct trace *trace = c->trace;
    struct trace_tensor tensor = {.place = shown->place,
                                  .layer = shown->layer,
                                  .n_rows = shown->rows ? c->task->n_tokens : shown->n_rows,
                                  .n_heads = shown->rows ? c->n_used : shown->n_heads,
                                  .size = shown->size};
    size_t n_parts = tensor.n_rows * tensor.n_heads;
    if (base_array_reserve(trace->items, trace->capacity, trace->n + 1, "tensors", why))
        return STATUS_MEMORY;
    tensor.values = calloc(n_parts * tensor.size, sizeof *tensor.values);
    tensor.squares = calloc(n_parts, sizeof *tensor.squares);
    if (!tensor.values || !tensor.squares) {
        free(tensor.values);
        free(tensor.squares);
        return status_fail(why, STATUS_MEMORY,
                           "no memory for %zu values of a tensor; trace fewer of them",
                           n_parts * tensor.size);
    }
    trace->items[trace->n++] = tensor;
    return STATUS_OK;
}

static struct trace_tensor *find(struct collector *c, const struct model_shown *shown)
{
    for (size_t i = c->trace->n; i-- > 0;)
        if (c->trace->items[i].place == shown->place && c->trace->items[i].layer == shown->layer)
            return &c->trace->items[i];
    return NULL;
}

static void note_part(const struct collector *c, struct trace_tensor *tensor, size_t part,
                      const float *values, double *sum)
{
    float *own = tensor->values + part * tensor->size;
    if (c->collects) {
        memcpy(own, values, tensor->size * sizeof *own);
        return;
    }
    for (size_t i = 0; i < tensor->size; i++) {
        double error = (double)values[i] - (double)own[i];
        tensor->squares[part] += error * error;
        *sum += error;
    }
}

/** The slot of an expert among those that a token chose; n_used: none. */
static size_t slot_of(const struct collector *c, size_t token, size_t expert)
{
    size_t slot = 0;
    while (slot < c->n_used && (size_t)c->experts[token * c->n_used + slot] != expert)
        slot++;
    return slot;
}

/** Keep the chosen experts of the layer: rows of experts are put in their order. */
static enum status note_experts(struct collector *c, const struct model_shown *shown,
                                struct status_why *why)
{
    size_t n = shown->n_rows * shown->size;
    if (base_array_reserve(c->experts, c->experts_capacity, n, "experts of tokens", why))
        return STATUS_MEMORY;
    memcpy(c->experts, shown->ids, n * sizeof *c->experts);
    c->n_used = shown->size;
    return STATUS_OK;
}

/** Ids and shares: of the host, ids as floats. */
static void note_route(struct collector *c, struct trace_tensor *tensor,
                       const struct model_shown *shown)
{
    double sum = 0;
    for (size_t row = 0; row < shown->n_rows; row++) {
        float *own = tensor->values + row * tensor->size;
        for (size_t i = 0; i < tensor->size; i++) {
            float value = shown->ids ? (float)shown->ids[row * tensor->size + i]
                                     : shown->shares[row * tensor->size + i];
            double error = (double)value - (double)own[i];
            if (c->collects)
                own[i] = value;
            else
                tensor->squares[row] += error * error;
            sum += error;
        }
    }
    tensor->sum_squares += c->collects ? 0 : sum * sum;
}

static void note(struct collector *c, struct trace_tensor *tensor, const struct model_shown *shown)
{
    double sum = 0;
    size_t n_heads = shown->rows ? 1 : shown->n_heads;
    for (size_t row = 0; row < shown->n_rows; row++) {
        const float *values = shown->data + row * n_heads * tensor->size;
        size_t token = shown->rows ? shown->rows[row] : row;
        size_t slot = shown->rows ? slot_of(c, token, shown->expert) : 0;
        for (size_t h = 0; h < n_heads; h++)
            note_part(c, tensor, token * tensor->n_heads + slot + h, values + h * tensor->size,
                      &sum);
    }
    if (!c->collects)
        tensor->sum_squares += sum * sum;
}

static void on_shown(void *user, struct kern_backend *backend, const struct model_shown *shown)
{
    (void)backend;
    struct collector *c = user;
    char name[TRACE_NAME_BYTES];
    if (!c->status && shown->ids)
        c->status = note_experts(c, shown, c->why);
    if (c->status)
        return;
    struct trace_tensor *tensor = find(c, shown);
    if (!tensor && c->collects &&
        (!c->task->want || c->task->want(c->task->want_user, shown->place, shown->layer,
                                         trace_tensor_name(name, shown->place, shown->layer)))) {
        c->status = make_tensor(c, shown, c->why);
        tensor = c->status ? NULL : &c->trace->items[c->trace->n - 1];
    }
    if (tensor && (shown->ids || shown->shares))
        note_route(c, tensor, shown);
    else if (tensor)
        note(c, tensor, shown);
}

/** x, and what comes of it after the last layer. */
struct rows {
    float *x, *hidden, *logits;
};

/** The output norm of all rows, and logits of the last. */
static enum status after_layers(const struct trace_task *task, struct collector *c,
                                struct model_session *session, const struct rows *rows,
                                struct status_why *why)
{
    const struct model_hparams *h = model_hparams(task->model);
    size_t n = task->n_tokens, n_logits = task->n_logits;
    uint32_t *all = malloc(n * sizeof *all);
    if (!all)
        return status_fail(why, STATUS_MEMORY, "no memory for %zu rows", n);
    for (size_t i = 0; i < n; i++)
        all[i] = (uint32_t)i;
    enum status status = model_hidden(session, rows->x, all, n, rows->hidden, why);
    free(all);
    struct model_shown shown = {.place = MODEL_AT_OUTPUT_NORM,
                                .layer = -1,
                                .n_rows = n,
                                .n_heads = 1,
                                .size = h->n_embd,
                                .data = rows->hidden};
    if (!status)
        on_shown(c, task->backend, &shown);
    struct kern_head head = model_kern_head(task->model);
    struct kern_linear product = {.weight = head.matrix,
                                  .bias = head.bias,
                                  .x = rows->hidden + (n - n_logits) * h->n_embd,
                                  .y = rows->logits,
                                  .y_stride = h->n_vocab,
                                  .n_tokens = n_logits};
    if (!status)
        status = kern_linear(task->backend, &product, why);
    for (size_t i = 0; !status && head.soft_cap > 0 && i < n_logits * h->n_vocab; i++)
        rows->logits[i] = head.soft_cap * tanhf(rows->logits[i] / head.soft_cap);
    shown.place = MODEL_AT_LOGITS;
    shown.n_rows = n_logits;
    shown.size = h->n_vocab;
    shown.data = rows->logits;
    if (!status && n_logits)
        on_shown(c, task->backend, &shown);
    return status;
}

static enum status run_pass(const struct trace_task *task, struct collector *c,
                            struct model_session *session, const struct rows *rows,
                            struct status_why *why)
{
    const struct model_segment segment = {.n_tokens = task->n_tokens, .parent = -1};
    const struct model_batch batch = {task->tokens, task->n_tokens, &segment, 1};
    enum status status = model_embed(session, &batch, rows->x, why);
    if (!status)
        status =
            model_forward(session, &batch, 0, model_hparams(task->model)->n_layers, rows->x, why);
    if (!status)
        status = after_layers(task, c, session, rows, why);
    return status ? status : c->status;
}

static enum status run_passes(const struct trace_task *task, struct collector *c,
                              struct model_session *session, const struct rows *rows,
                              struct status_why *why)
{
    c->collects = true;
    enum status status = run_pass(task, c, session, rows, why);
    c->collects = false;
    for (size_t i = 0; !status && i < task->n_passes; i++) {
        struct trace_rounded rounded = {.arithmetic = task->arithmetic};
        trace_rounded_begin(&rounded, task->backend, i + 1);
        status = run_pass(task, c, session, rows, why);
        trace_rounded_end(&rounded);
        c->trace->n_passes += !status;
    }
    return status;
}

static void set_mean(struct trace_tensor *tensor)
{
    size_t n_parts = tensor->n_rows * tensor->n_heads;
    for (size_t i = 0; i < n_parts; i++)
        tensor->mean_squares += tensor->squares[i] / (double)n_parts;
}

enum status trace_run(struct trace *out, const struct trace_task *task, struct status_why *why)
{
    const struct model_hparams *h = model_hparams(task->model);
    *out = (struct trace){.n_tokens = task->n_tokens, .biased_choice = h->experts.n_groups > 1};
    for (size_t i = 0; i < h->n_layers; i++)
        out->biased_choice |= model_layer(task->model, i)->experts.selection_bias.data != NULL;
    if (kern_describe(task->backend).own_memory)
        return status_fail(why, STATUS_USAGE, "a trace is made on a CPU; expected --device cpu");
    struct collector c = {.trace = out, .task = task, .why = why};
    struct model_session_options options = {.tile_tokens = task->n_tokens,
                                            .max_batch = task->n_tokens,
                                            .max_segment = task->n_tokens,
                                            .trace = on_shown,
                                            .trace_user = &c};
    struct model_session *session = NULL;
    void *x = NULL, *hidden = NULL, *logits = NULL;
    size_t row = h->n_embd * sizeof(float), wide = model_residual_width(h) * sizeof(float);
    enum status status = kern_alloc(task->backend, &x, task->n_tokens * wide, why);
    if (!status)
        status = kern_alloc(task->backend, &hidden, task->n_tokens * row, why);
    if (!status)
        status = kern_alloc(task->backend, &logits,
                            (task->n_logits + !task->n_logits) * h->n_vocab * sizeof(float), why);
    if (!status)
        status = model_session_open(&session, task->model, task->backend, &options, why);
    struct rows rows = {x, hidden, logits};
    if (!status)
        status = run_passes(task, &c, session, &rows, why);
    for (size_t i = 0; i < out->n; i++)
        set_mean(&out->items[i]);
    model_session_close(session);
    kern_free(task->backend, x);
    kern_free(task->backend, hidden);
    kern_free(task->backend, logits);
    free(c.experts);
    return status;
}

void trace_free(struct trace *trace)
{
    for (size_t i = 0; i < trace->n; i++) {
        free(trace->items[i].values);
        free(trace->items[i].squares);
    }
    free(trace->items);
    *trace = (struct trace){0};
}

double trace_tensor_error(const struct trace *trace, const struct trace_tensor *tensor, size_t row,
                          size_t head)
{
    double squares = fmax(tensor->squares[row * tensor->n_heads + head], tensor->mean_squares);
    return sqrt(squares / (double)(tensor->size * trace->n_passes));
}

struct trace_tensor_figures trace_tensor_figures(const struct trace_tensor *tensor, size_t n_rows)
{
    size_t width = tensor->n_heads * tensor->size;
    const float *values = tensor->values + (tensor->n_rows - n_rows) * width;
    struct trace_tensor_figures f = {0};
    float sum = 0;
    for (size_t i = 0; i < n_rows * width; i++) {
        double value = (double)values[i];
        sum += values[i];
        f.norm += value * value;
        f.largest = fmax(f.largest, fabs(value));
        f.n_nonfinite += !isfinite(value);
    }
    f.sum = (double)sum;
    f.norm = sqrt(f.norm);
    return f;
}
