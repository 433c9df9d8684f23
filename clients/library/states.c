/* What a model's layers give: hidden states, and whole rows of log-probabilities. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "clients/library/batches.h"
#include "kernels/implementation.h"
#include "kernels/kernels.h"

enum { LOGITS_FLOATS = 4 << 20 /* held at once: 16 MiB */ };

/** A call at work. */
struct pass {
    struct assay_own_batches batches;
    struct model_session *session;
    size_t n_layers; /* that are evaluated */
    float *x;        /* backend: [tokens of a batch, streams * width] */
    float *hidden;   /* backend: [positions of a batch, width], normed; NULL: not wanted */
    /* Of whole rows: */
    struct kern_row_score *scores; /* [positions of a batch] */
    float *logits;                 /* [slab, n_tokens] */
    size_t slab;
};

/** layer: the last one, or ASSAY_NORMED. */
static enum status pass_open(struct pass *p, struct assay_model *m,
                             const struct assay_windows *windows, int layer, struct status_why *why)
{
    enum status status = assay_own_batches_open(&p->batches, m, windows, why);
    if (status)
        return status;
    const struct model_hparams *h = model_hparams(m->model);
    if (layer != ASSAY_NORMED && (layer < 0 || (uint32_t)layer >= h->n_layers))
        return status_fail(why, STATUS_USAGE,
                           "there is no layer %d, expected 0 to %" PRIu32 ", or ASSAY_NORMED",
                           layer, h->n_layers - 1);
    p->n_layers = layer == ASSAY_NORMED ? h->n_layers : (size_t)layer + 1;
    size_t n_tokens = p->batches.most * p->batches.length;
    const struct model_session_options options = {.tile_tokens =
                                                      kern_describe(m->backend).tile_tokens,
                                                  .max_batch = n_tokens,
                                                  .max_segment = p->batches.length,
                                                  .layers = {0, p->n_layers},
                                                  .progress = assay_own_batches_steps,
                                                  .progress_user = &p->batches};
    void *x = NULL, *hidden = NULL;
    status = kern_alloc(m->backend, &x, n_tokens * model_residual_width(h) * sizeof(float), why);
    if (!status && layer == ASSAY_NORMED)
        status = kern_alloc(m->backend, &hidden,
                            assay_own_batches_most(&p->batches) * h->n_embd * sizeof(float), why);
    p->x = x;
    p->hidden = hidden;
    return status ? status : model_session_open(&p->session, m->model, m->backend, &options, why);
}

static void pass_close(struct pass *p)
{
    model_session_close(p->session);
    if (p->batches.model) {
        kern_free(p->batches.model->backend, p->x);
        kern_free(p->batches.model->backend, p->hidden);
    }
    free(p->scores);
    free(p->logits);
    assay_own_batches_close(&p->batches);
}

/** The current windows through the layers. */
static enum status forward(struct pass *p, struct status_why *why)
{
    const struct assay_own_batches *b = &p->batches;
    enum status status = model_embed(p->session, &b->batch, p->x, why);
    if (!status)
        status = model_forward(p->session, &b->batch, 0, p->n_layers, p->x, why);
    return status || !p->hidden
               ? status
               : model_hidden(p->session, p->x, b->rows, assay_own_batches_n(b), p->hidden, why);
}

/** The current windows' states to the caller; those of a window lie one after the other. */
static enum status give_states(const struct pass *p, float *out, struct status_why *why)
{
    const struct assay_own_batches *b = &p->batches;
    const struct model_hparams *h = model_hparams(b->model->model);
    size_t n = b->windows->n_positions;
    size_t width = p->hidden ? h->n_embd : model_residual_width(h);
    const float *from = p->hidden ? p->hidden : p->x + b->windows->first * width;
    size_t step = (p->hidden ? n : b->length) * width;
    enum status status = STATUS_OK;
    out += assay_own_batches_before(b) * width;
    for (size_t i = 0; i < b->n && !status; i++)
        status = kern_download(b->model->backend, out + i * n * width, from + i * step,
                               n * width * sizeof *out, why);
    return status;
}

static enum status hidden(struct assay_model *m, const struct assay_windows *windows, int layer,
                          float *out, struct status_why *why)
{
    struct pass p = {.n_layers = 0};
    enum status status = assay_own_given(out, "the place of the states", why);
    if (!status)
        status = pass_open(&p, m, windows, layer, why);
    while (!status && assay_own_batches_next(&p.batches)) {
        status = forward(&p, why);
        if (!status)
            status = give_states(&p, out, why);
    }
    if (!status)
        status = assay_own_batches_end(&p.batches, why);
    pass_close(&p);
    return status;
}

enum assay_status assay_hidden(struct assay_model *model, const struct assay_windows *windows,
                               int layer, float *out, struct assay_why *why)
{
    struct status_why own = {""};
    return assay_own_end(hidden(model, windows, layer, out, &own), &own, why);
}

/** Tokens of the vocabulary. */
struct token_range {
    size_t first, n;
};

/** The current windows' rows to the caller: logits become what kern_score makes of a target's. */
static enum status give_rows(const struct pass *p, struct token_range tokens, double *out,
                             struct status_why *why)
{
    const struct assay_own_batches *b = &p->batches;
    struct kern_backend *backend = b->model->backend;
    struct kern_head head = model_kern_head(b->model->model);
    size_t n_rows = assay_own_batches_n(b);
    head.hidden = p->hidden;
    struct kern_score score = {.n_heads = 1, .heads = &head, .n_rows = n_rows, .rows = p->scores};
    enum status status = kern_score(backend, &score, why);
    out += assay_own_batches_before(b) * tokens.n;
    for (size_t row = 0, n; row < n_rows && !status; row += n) {
        n = base_min(n_rows - row, p->slab);
        struct kern_logit_rows op = {
            .head = head, .n_rows = n, .first = tokens.first, .n = tokens.n, .logits = p->logits};
        op.head.hidden = p->hidden + row * head.matrix->n_cols;
        status = kern_logit_rows(backend, &op, why);
        for (size_t i = 0; !status && i < n * tokens.n; i++) {
            const struct kern_row_score *of_row = &p->scores[row + i / tokens.n];
            out[row * tokens.n + i] = (double)p->logits[i] - of_row->max_logit - of_row->log_sum;
        }
    }
    return status;
}

static enum status rows(struct assay_model *m, const struct assay_windows *windows,
                        struct token_range tokens, double *out, struct status_why *why)
{
    struct pass p = {.n_layers = 0};
    enum status status = assay_own_given(out, "the place of the rows", why);
    if (!status)
        status = pass_open(&p, m, windows, ASSAY_NORMED, why);
    size_t n_vocab = status ? 0 : model_hparams(m->model)->n_vocab;
    if (!status && (tokens.n == 0 || tokens.first >= n_vocab || tokens.n > n_vocab - tokens.first))
        status = status_fail(why, STATUS_USAGE, "a vocabulary of %zu tokens has no %zu from %zu on",
                             n_vocab, tokens.n, tokens.first);
    if (!status)
        status = base_array_new(p.scores, assay_own_batches_most(&p.batches), "positions", why);
    if (!status) {
        p.slab =
            base_min(base_max(LOGITS_FLOATS / tokens.n, 1), assay_own_batches_most(&p.batches));
        status = base_array_new(p.logits, p.slab * tokens.n, "logits", why);
    }
    while (!status && assay_own_batches_next(&p.batches)) {
        status = forward(&p, why);
        if (!status)
            status = give_rows(&p, tokens, out, why);
    }
    if (!status)
        status = assay_own_batches_end(&p.batches, why);
    pass_close(&p);
    return status;
}

enum assay_status assay_rows(struct assay_model *model, const struct assay_windows *windows,
                             size_t first_token, size_t n_tokens, double *out,
                             struct assay_why *why)
{
    struct status_why own = {""};
    return assay_own_end(
        rows(model, windows, (struct token_range){first_token, n_tokens}, out, &own), &own, why);
}
