#include "model/forward/session.h"

/** The parts of the work area. */
struct moe_work {
    float *logits;    /* [T, E] */
    float *gathered;  /* [T, D]: rows of h for one expert */
    float *result;    /* [T, D]: what the expert makes of them */
    float *gate, *up; /* [T, F] */
};

static struct moe_work divide_work(const struct model_session *s, const struct model_step *step)
{
    const struct model_hparams *h = &s->model->hparams;
    size_t n = step->tile.n_tokens;
    struct moe_work w;
    w.logits = s->work;
    w.gathered = w.logits + model_work_floats(n * h->n_experts);
    w.result = w.gathered + model_work_floats(n * h->n_embd);
    w.gate = w.result + model_work_floats(n * h->n_embd);
    w.up = w.gate + model_work_floats(n * h->n_ff[step->i_layer]);
    return w;
}

/** The tile's rows that chose expert e, in order, with their shares. */
static size_t select_rows(struct model_session *s, size_t n_tokens, size_t e)
{
    size_t n_used = s->model->hparams.n_experts_used;
    size_t n = 0;
    for (size_t i = 0; i < n_tokens * n_used; i++) {
        if ((size_t)s->experts[i] != e)
            continue;
        s->expert_rows[n] = (uint32_t)(i / n_used);
        s->expert_shares[n++] = s->shares[i];
    }
    return n;
}

/** Let expert e work on its rows and add its share to x. */
static enum status apply_expert(struct model_session *s, const struct model_step *step, size_t e,
                                const struct moe_work *w, struct status_why *why)
{
    const struct model_ffn *ffn = &step->layer->ffn[e];
    size_t width = s->model->hparams.n_embd;
    size_t n = select_rows(s, step->tile.n_tokens, e);
    if (n == 0)
        return STATUS_OK;
    enum status status = kern_gather(s->backend, s->h, width, s->expert_rows, n, w->gathered, why);
    if (!status)
        status = model_ffn_inner(s, ffn, w->gathered, n, w->gate, w->up, why);
    struct kern_linear down = {
        .weight = &ffn->down, .x = w->gate, .y = w->result, .y_stride = width, .n_tokens = n};
    if (!status)
        status = kern_linear(s->backend, &down, why);
    if (!status)
        status = kern_scatter_add(s->backend, w->result, width, s->expert_rows, s->expert_shares, n,
                                  step->x, why);
    return status;
}

enum status model_block_moe(struct model_session *s, const struct model_step *step,
                            struct status_why *why)
{
    const struct model_hparams *h = &s->model->hparams;
    size_t n = step->tile.n_tokens;
    struct moe_work w = divide_work(s, step);
    enum status status = model_norm(s, &step->layer->ffn_norm, step->x, n, s->h, why);
    struct kern_linear router = {.weight = &step->layer->router,
                                 .x = s->h,
                                 .y = w.logits,
                                 .y_stride = h->n_experts,
                                 .n_tokens = n};
    if (!status)
        status = kern_linear(s->backend, &router, why);
    struct kern_route route = {.logits = w.logits,
                               .n_tokens = n,
                               .n_experts = h->n_experts,
                               .n_used = h->n_experts_used,
                               .normalise = true,
                               .experts = s->experts,
                               .shares = s->shares};
    if (!status)
        status = kern_route(s->backend, &route, why);
    /* Ascending: a token's sum over its experts has one order, whatever else is in its tile. */
    for (size_t e = 0; !status && e < h->n_experts; e++)
        status = apply_expert(s, step, e, &w, why);
    return status;
}
