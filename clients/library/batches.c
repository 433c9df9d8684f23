#include "clients/library/batches.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "kernels/kernels.h"
#include "model/swap.h"

enum {
    BATCH_TOKENS = 4096,         /* some tiles of the forward pass */
    MAX_WINDOW = 1 << 30,        /* positions are 32-bit integers */
    MAX_POSITION_BYTES = 1 << 20 /* what any function keeps of a position, or writes of it */
};

enum status assay_own_check_ids(const struct assay_model *model, const int32_t *ids, size_t n,
                                const char *what, struct status_why *why)
{
    uint32_t n_vocab = model_hparams(model->model)->n_vocab;
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || (uint32_t)ids[i] >= n_vocab)
            return status_fail(why, STATUS_USAGE,
                               "%s, number %zu, is %" PRId32 ", expected 0 to %" PRIu32, what, i,
                               ids[i], n_vocab - 1);
    return STATUS_OK;
}

static enum status check_windows(const struct assay_model *model, const struct assay_windows *w,
                                 struct status_why *why)
{
    enum status status = assay_own_given(model, "the model", why);
    if (!status)
        status = assay_own_given(w, "the windows", why);
    if (!status)
        status = assay_own_given(w->tokens, "the tokens", why);
    if (status)
        return status;
    if (w->n_windows == 0 || w->n_positions == 0 || w->first >= w->n_tokens ||
        w->n_positions > w->n_tokens - w->first)
        return status_fail(
            why, STATUS_USAGE, "%zu window%s of %zu tokens have no %zu positions from %zu on",
            w->n_windows, status_plural(w->n_windows), w->n_tokens, w->n_positions, w->first);
    if (w->n_tokens > MAX_WINDOW || w->n_windows > SIZE_MAX / MAX_POSITION_BYTES / w->n_tokens)
        return status_fail(why, STATUS_USAGE, "%zu windows of %zu tokens are too many",
                           w->n_windows, w->n_tokens);
    return assay_own_check_ids(model, w->tokens, w->n_windows * w->n_tokens, "a token", why);
}

enum status assay_own_batches_open(struct assay_own_batches *b, struct assay_model *model,
                                   const struct assay_windows *w, struct status_why *why)
{
    enum status status = check_windows(model, w, why);
    if (status)
        return status;
    size_t preferred = kern_describe(model->backend).batch_tokens;
    b->model = model;
    b->windows = w;
    b->length = w->first + w->n_positions;
    b->most = base_max((preferred ? preferred : BATCH_TOKENS) / b->length, 1);
    b->most = base_min(b->most, w->n_windows);
    status = base_array_new(b->tokens, b->most * b->length, "tokens", why);
    if (!status)
        status = base_array_new(b->segments, b->most, "windows", why);
    if (!status)
        status = base_array_new(b->rows, assay_own_batches_most(b), "positions", why);
    return status;
}

void assay_own_batches_close(struct assay_own_batches *b)
{
    if (b->model)
        kern_set_cancel(b->model->backend, &b->model->cancel);
    free(b->tokens);
    free(b->segments);
    free(b->rows);
    *b = (struct assay_own_batches){0};
}

bool assay_own_batches_next(struct assay_own_batches *b)
{
    const struct assay_windows *w = b->windows;
    b->first += b->n;
    b->n = base_min(w->n_windows - b->first, b->most);
    for (size_t i = 0; i < b->n; i++) {
        memcpy(b->tokens + i * b->length, w->tokens + (b->first + i) * w->n_tokens,
               b->length * sizeof *b->tokens);
        b->segments[i] = (struct model_segment){
            .start = i * b->length, .n_tokens = b->length, .parent = -1, .n_unwanted = w->first};
        for (size_t p = 0; p < w->n_positions; p++)
            b->rows[i * w->n_positions + p] = (uint32_t)(i * b->length + w->first + p);
    }
    b->batch = (struct model_batch){.tokens = b->tokens,
                                    .n_tokens = b->n * b->length,
                                    .segments = b->segments,
                                    .n_segments = b->n};
    return b->n > 0;
}

enum status assay_own_batches_end(const struct assay_own_batches *b, struct status_why *why)
{
    return atomic_load(b->model->backend->cancel) ? STATUS_CANCELLED
                                                  : model_check_unchanged(b->model->model, why);
}

void assay_own_batches_progress(void *user, double fraction)
{
    static const atomic_bool ended = true;
    const struct assay_own_batches *b = user;
    const struct assay_model *m = b->model;
    double done = ((double)b->first + fraction * (double)b->n) / (double)b->windows->n_windows;
    if (m->progress && m->progress(m->user, done))
        kern_set_cancel(m->backend, &ended);
}

void assay_own_batches_steps(void *user, size_t done, size_t total)
{
    assay_own_batches_progress(user, (double)done / (double)total);
}
