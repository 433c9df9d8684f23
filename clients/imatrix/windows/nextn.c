#include "clients/imatrix/windows/nextn.h"

#include <stdlib.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "kernels/kernels.h"

/** The streams of one scorer. */
struct following {
    struct eval_streams streams;
    const struct imat_nextn *of;
    struct kern_backend *backend;
    struct model_session *session; /* of the block alone */
    size_t n_most;                 /* pairs that it takes at a time */
    float *x, *hidden;             /* backend memory, [n_most, D]; hidden for a head of its own */
    /* Host memory, [n_most]. */
    int32_t *tokens;
    uint8_t *marks;
    uint32_t *before; /* rows of the batch */
    struct model_segment *segments;
};

/** Whole sequences, and enough of them for a tile. */
static size_t most_pairs(const struct imat_nextn *n, const struct kern_backend *b)
{
    size_t tile = kern_describe(b).tile_tokens;
    size_t wanted = base_max(n->units->most.longest, tile ? tile : MODEL_TILE_TOKENS);
    return base_min(wanted, n->units->most.n_tokens);
}

static struct model_session_options session_of(const struct imat_nextn *n,
                                               const struct kern_backend *b)
{
    size_t block = model_hparams(n->model)->n_layers;
    return (struct model_session_options){.tile_tokens = kern_describe(b).tile_tokens,
                                          .max_batch = most_pairs(n, b),
                                          .max_segment = n->units->most.longest,
                                          .layers = {block, block + 1}};
}

/** Whether the block's head is no other's. */
static bool has_own_head(const struct model *m)
{
    return model_nextn_head(m).matrix->data != model_head(m)->data;
}

static enum status enter(struct eval_streams *streams, struct eval_pass *passes, size_t n_passes,
                         struct status_why *why)
{
    (void)streams, (void)passes, (void)n_passes, (void)why;
    return STATUS_OK;
}

/** Lay the pairs of segments out, from *at on, as many as have room; *at is the next segment. */
static struct model_batch lay_pairs(struct following *f, const struct model_batch *batch,
                                    size_t *at)
{
    struct model_batch pairs = {
        .tokens = f->tokens, .segments = f->segments, .marks = batch->marks ? f->marks : NULL};
    for (; *at < batch->n_segments; ++*at) {
        const struct model_segment *segment = &batch->segments[*at];
        size_t n = segment->n_tokens - 1, start = pairs.n_tokens;
        if (start + n > f->n_most)
            break;
        for (size_t p = 0; p < n; p++) {
            size_t token = segment->start + p + 1;
            f->tokens[start + p] = batch->tokens[token];
            f->marks[start + p] = batch->marks ? batch->marks[token] : 0;
            f->before[start + p] = (uint32_t)(token - 1);
        }
        if (n > 0)
            f->segments[pairs.n_segments++] =
                (struct model_segment){.start = start, .n_tokens = n, .parent = -1};
        pairs.n_tokens += n;
    }
    return pairs;
}

static enum status evaluate(struct following *f, const struct model_batch *pairs,
                            const float *stream, struct status_why *why)
{
    const struct model *m = f->of->model;
    size_t block = model_hparams(m)->n_layers, n = pairs->n_tokens;
    enum status status = model_nextn_enter(f->session, pairs, f->before, stream, f->x, why);
    if (!status)
        status = model_forward(f->session, pairs, block, block + 1, f->x, why);
    if (status || !f->hidden)
        return status;
    status = model_nextn_hidden(f->session, f->x, n, f->hidden, why);
    return status ? status
                  : imat_collector_count(f->backend, model_nextn_head(m).matrix, f->hidden, n,
                                         pairs->marks, why);
}

static enum status reach(struct eval_streams *streams, const struct eval_pass *passes,
                         size_t n_passes, size_t i, struct status_why *why)
{
    struct following *f = (struct following *)streams;
    const struct eval_pass *pass = &passes[i];
    enum status status = STATUS_OK;
    (void)n_passes;
    for (size_t at = 0; at < pass->batch->n_segments && !status;) {
        struct model_batch pairs = lay_pairs(f, pass->batch, &at);
        if (pairs.n_tokens > 0)
            status = evaluate(f, &pairs, pass->x, why);
    }
    return status;
}

static void close_following(struct eval_streams *streams)
{
    struct following *f = (struct following *)streams;
    model_session_close(f->session);
    kern_free(f->backend, f->x);
    kern_free(f->backend, f->hidden);
    free(f->tokens);
    free(f->marks);
    free(f->before);
    free(f->segments);
    free(f);
}

/** Its model and backend are set. */
static enum status allocate(struct following *f, struct status_why *why)
{
    const struct model *m = f->of->model;
    size_t n_bytes = f->n_most * model_hparams(m)->n_embd * sizeof(float);
    void *x = NULL, *hidden = NULL;
    enum status status = kern_alloc(f->backend, &x, n_bytes, why);
    if (!status && has_own_head(m))
        status = kern_alloc(f->backend, &hidden, n_bytes, why);
    f->x = x;
    f->hidden = hidden;
    if (!status)
        status = base_array_new(f->tokens, f->n_most, "tokens", why);
    if (!status)
        status = base_array_new(f->marks, f->n_most, "tokens", why);
    if (!status)
        status = base_array_new(f->before, f->n_most, "tokens", why);
    return status ? status : base_array_new(f->segments, f->n_most, "tokens", why);
}

static enum status open_following(void *user, struct kern_backend *backend,
                                  struct eval_streams **out, struct status_why *why)
{
    static const struct eval_streams_kind kind = {
        .enter = enter, .reach = reach, .close = close_following};
    struct following *f = calloc(1, sizeof *f);
    if (!f)
        return status_fail(why, STATUS_MEMORY, "no memory for streams");
    *f = (struct following){
        .streams.kind = &kind, .of = user, .backend = backend, .n_most = most_pairs(user, backend)};
    const struct model_session_options options = session_of(user, backend);
    enum status status = allocate(f, why);
    if (!status)
        status = model_session_open(&f->session, f->of->model, backend, &options, why);
    if (status)
        close_following(&f->streams);
    else
        *out = &f->streams;
    return status;
}

/** The scorer's own, and the block's. */
static double scorer_bytes(void *user, const struct model *model, struct kern_backend *backend,
                           const struct eval_scorer_options *options)
{
    const struct imat_nextn *n = user;
    struct eval_scorer_options scorer = *options;
    scorer.streams = NULL;
    const struct model_session_options session = session_of(n, backend);
    size_t n_pairs = session.max_batch, n_embd = model_hparams(model)->n_embd;
    size_t rows = n_pairs * n_embd * sizeof(float) * (has_own_head(model) ? 2 : 1);
    size_t host = n_pairs * (sizeof(int32_t) + sizeof(uint8_t) + sizeof(uint32_t) +
                             sizeof(struct model_segment));
    return eval_scorer_bytes(model, backend, &scorer) +
           (double)(rows + host + model_nextn_bytes(model, n_pairs) +
                    model_session_bytes(model, &session) +
                    model_operation_bytes(model, backend, &session));
}

struct eval_stream_source imat_nextn_source(struct imat_nextn *nextn)
{
    return (struct eval_stream_source){
        .user = nextn, .open = open_following, .scorer_bytes = scorer_bytes};
}
