/* Before and after the block that predicts the token after the next. */
#include "kernels/backend.h"
#include "model/forward/forward.h"
#include "model/forward/session.h"

static enum status normalise(struct model_session *s, const struct model_norm *norm, const float *x,
                             size_t n, float *y, struct status_why *why)
{
    return model_normalise(
        s, &(struct model_norm_step){norm, x, y, n, s->model->hparams.n_embd, false}, why);
}

/** Normalised rows as one half of the joined rows; spare: of as many floats as x. */
static enum status put_half(struct model_session *s, const struct model_norm *norm, const float *x,
                            size_t n, float *spare, float *half, struct status_why *why)
{
    size_t n_embd = s->model->hparams.n_embd;
    enum status status = normalise(s, norm, x, n, spare, why);
    struct kern_copy op = {.x = spare,
                           .x_stride = n_embd,
                           .y = half,
                           .y_stride = 2 * n_embd,
                           .width = n_embd,
                           .n_rows = n};
    return status ? status : model_copy(s, op, why);
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
        status = put_half(s, &block->token_norm, x, n, x, joined, why);
    if (!status)
        status = put_half(s, &block->hidden_norm, rows, n, x, joined + n_embd, why);
    if (!status)
        status = model_multiply(s, &block->join, joined, n, x, why);
    kern_free(s->backend, memory);
    return status;
}

enum status model_nextn_hidden(struct model_session *s, const float *x, size_t n, float *hidden,
                               struct status_why *why)
{
    return normalise(s, &s->model->nextn.norm, x, n, hidden, why);
}
