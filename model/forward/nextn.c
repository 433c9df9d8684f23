/* Before and after the block that predicts the token after the next. */
#include "kernels/backend.h"
#include "model/forward/forward.h"
#include "model/forward/session.h"

/** Normalise rows of x and put them into one half of the joined rows. */
static enum status put_half(struct model_session *s, const struct model_norm *norm, float *x,
                            size_t n, float *half, struct status_why *why)
{
    size_t n_embd = s->model->hparams.n_embd;
    enum status status = model_normalise_rows(s, norm, x, n, n_embd, why);
    struct kern_copy op = {.x = x,
                           .x_stride = n_embd,
                           .y = half,
                           .y_stride = 2 * n_embd,
                           .width = n_embd,
                           .n_rows = n};
    return status ? status : model_copy(s, op, why);
}

static enum status copy_rows(struct model_session *s, const float *from, size_t n, float *to,
                             struct status_why *why)
{
    size_t n_embd = s->model->hparams.n_embd;
    struct kern_copy op = {.x = from, .x_stride = n_embd, .y = to, .width = n_embd, .n_rows = n};
    return model_copy(s, op, why);
}

enum status model_nextn_enter(struct model_session *s, const int32_t *tokens, size_t n,
                              const float *rows, float *x, struct status_why *why)
{
    const struct model_nextn *block = &s->model->nextn;
    size_t n_embd = s->model->hparams.n_embd;
    void *memory = NULL;
    enum status status = model_check_ids(s, tokens, n, why);
    if (!status)
        status = kern_alloc(s->backend, &memory, 2 * n * n_embd * sizeof(float), why);
    float *joined = memory;
    if (!status)
        status = kern_embed(s->backend, &block->embedding, tokens, n, x, why);
    if (!status)
        status = put_half(s, &block->token_norm, x, n, joined, why);
    if (!status)
        status = copy_rows(s, rows, n, x, why);
    if (!status)
        status = put_half(s, &block->hidden_norm, x, n, joined + n_embd, why);
    if (!status)
        status = model_multiply(s, &block->join, joined, n, x, why);
    kern_free(s->backend, memory);
    return status;
}

enum status model_nextn_hidden(struct model_session *s, const float *x, size_t n, float *hidden,
                               struct status_why *why)
{
    enum status status = copy_rows(s, x, n, hidden, why);
    return status ? status
                  : model_normalise_rows(s, &s->model->nextn.norm, hidden, n,
                                         s->model->hparams.n_embd, why);
}
