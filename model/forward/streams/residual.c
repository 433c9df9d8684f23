#include "model/forward/streams/residual.h"

#include "model/forward/streams/altup.h"
#include "model/forward/streams/earlier.h"
#include "model/forward/streams/low_rank.h"
#include "model/forward/streams/streams.h"

static void embed(struct model_session *s, const int32_t *tokens, size_t n_tokens, float *x)
{
    size_t n_embd = s->model->hparams.n_embd;
    MODEL_TRY(s,
              kern_embed(s->backend, &s->model->embedding, tokens, n_tokens, x, &s->failure.why));
    if (s->model->arch->embedding_norm)
        model_normalise_rows(s, NULL, x, n_tokens, n_embd);
    s->shown = (struct model_shown){.layer = -1, .n_rows = n_tokens};
    model_show(s, MODEL_AT_EMBEDDING, x, 1, n_embd);
}

static void gather(struct model_session *s, const float *x, const uint32_t *rows, size_t n_rows,
                   float *hidden)
{
    struct kern_gather op = {x, rows, n_rows, s->model->hparams.n_embd, hidden};
    MODEL_TRY(s, kern_gather(s->backend, &op, &s->failure.why));
}

static const struct model_residual_form one_row = {.begin = embed, .end = gather};

static const struct model_residual_form hyper_connections = {
    .floats = model_streams_floats,
    .work_floats = model_streams_work_floats,
    .constants = model_streams_constants,
    .begin = model_streams_begin,
    .open = model_streams_open,
    .close = model_streams_close,
    .end = model_streams_end,
};

static const struct model_residual_form low_rank = {
    .floats = model_low_rank_floats,
    .work_floats = model_low_rank_work_floats,
    .constants = model_streams_constants,
    .begin = model_streams_begin,
    .open = model_low_rank_open,
    .close = model_low_rank_close,
    .end = model_low_rank_end,
};

static const struct model_residual_form altup = {
    .floats = model_altup_floats,
    .work_floats = model_altup_work_floats,
    .constants = model_altup_constants,
    .begin = model_altup_begin,
    .layer = model_altup_layer,
    .end = model_altup_end,
};

static const struct model_residual_form earlier = {
    .floats = model_earlier_floats,
    .work_floats = model_earlier_work_floats,
    .begin = model_earlier_begin,
    .layer = model_earlier_layer,
    .end = model_earlier_end,
};

const struct model_residual_form *model_residual_of(const struct model *m)
{
    if (m->arch->altup)
        return &altup;
    if (m->hparams.residual_block > 0)
        return &earlier;
    if (m->hparams.stream_rank > 0)
        return &low_rank;
    return m->hparams.n_streams > 1 ? &hyper_connections : &one_row;
}
