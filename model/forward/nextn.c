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

/** x = the rows before n pairs. */
static void take_rows(struct model_session *s, const float *stream, const uint32_t *before,
                      size_t n, float *x)
{
    const struct kern_gather gather = {stream, before, n, s->model->hparams.n_embd, x};
    if (s->model->hparams.nextn_stream)
        MODEL_TRY(s, kern_gather(s->backend, &gather, &s->failure.why));
    else
        model_hide(s, stream, before, n, x);
}

size_t model_nextn_bytes(const struct model *m, size_t n)
{
    return 2 * n * m->hparams.n_embd * sizeof(float);
}

enum status model_nextn_enter(struct model_session *s, const struct model_batch *pairs,
                              const uint32_t *before, const float *stream, float *x,
                              struct status_why *why)
{
    const struct model_nextn *block = &s->model->nextn;
    size_t n = pairs->n_tokens, n_embd = s->model->hparams.n_embd;
    void *memory = NULL;
    s->failure = (struct status_kept){0};
    MODEL_TRY(s, model_check_ids(s, pairs->tokens, n, &s->failure.why));
    MODEL_TRY(s, kern_alloc(s->backend, &memory, model_nextn_bytes(s->model, n), &s->failure.why));
    float *joined = memory;
    struct model_norm_step norm = {&block->hidden_norm, x, x, n, n_embd, false};
    take_rows(s, stream, before, n, x);
    put_half(s, &norm, joined + n_embd);
    norm.norm = &block->token_norm;
    MODEL_TRY(s, kern_embed(s->backend, &block->embedding, pairs->tokens, n, x, &s->failure.why));
    put_half(s, &norm, joined);
    s->shown = (struct model_shown){.layer = (int)s->model->hparams.n_layers, .n_rows = n};
    s->marks = pairs->marks;
    model_multiply(s, &block->join, joined, n, x);
    s->marks = NULL;
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
