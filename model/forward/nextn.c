/* Before and after the block that predicts the token after the next. */
#include "kernels/backend.h"
#include "model/forward/forward.h"
#include "model/forward/session.h"

/** Normalised rows as one half of the joined rows. */
static void put_half(struct model_session *s, const struct model_norm_step *norm, float *half)
{
    size_t n_embd = norm->width;
    model_normalise(s, norm);
    struct kern_copy op = {.x = norm->y,
                           .x_stride = n_embd,
                           .y = half,
                           .y_stride = 2 * n_embd,
                           .width = n_embd,
                           .n_rows = norm->n_rows};
    model_copy(s, op);
}

enum status model_nextn_enter(struct model_session *s, const int32_t *tokens, size_t n,
                              const float *rows, float *x, struct status_why *why)
{
    const struct model_nextn *block = &s->model->nextn;
    size_t n_embd = s->model->hparams.n_embd;
    void *memory = NULL;
    s->failure = (struct status_kept){0};
    MODEL_TRY(s, model_check_ids(s, tokens, n, &s->failure.why));
    MODEL_TRY(s, kern_alloc(s->backend, &memory, 2 * n * n_embd * sizeof(float), &s->failure.why));
    float *joined = memory;
    struct model_norm_step norm = {&block->token_norm, x, x, n, n_embd, false};
    MODEL_TRY(s, kern_embed(s->backend, &block->embedding, tokens, n, x, &s->failure.why));
    put_half(s, &norm, joined);
    norm.norm = &block->hidden_norm;
    norm.x = rows;
    put_half(s, &norm, joined + n_embd);
    model_multiply(s, &block->join, joined, n, x);
    kern_free(s->backend, memory);
    return status_of(&s->failure, why);
}

enum status model_nextn_hidden(struct model_session *s, const float *x, size_t n, float *hidden,
                               struct status_why *why)
{
    s->failure = (struct status_kept){0};
    model_normalise(s, &(struct model_norm_step){&s->model->nextn.norm, x, hidden, n,
                                                 s->model->hparams.n_embd, false});
    return status_of(&s->failure, why);
}
