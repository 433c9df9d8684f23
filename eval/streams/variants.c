#include "eval/streams/variants.h"

#include <math.h>
#include <stdlib.h>

#include "eval/scorer/scorer.h"
#include "eval/streams/caches.h"
#include "kernels/backend.h"

/** The streams of one scorer. */
struct varied {
    struct eval_cached cached;
    const struct eval_variants *variants;
    struct kern_backend *backend;
    struct model *candidate;        /* the scorer's own */
    const struct model *candidates; /* the same, as the scorer has it */
    const struct eval_variant *at;  /* that it is; NULL: itself */
    struct eval_cache *caches[2];   /* of the model and of the candidate */
};

enum status eval_variant_enter(struct model *m, const struct eval_variant *from,
                               const struct eval_variant *to, struct status_why *why)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; from && i < from->n && !status; i++)
        status = model_swap(m, from->swaps[i].name, NULL, NULL, why);
    for (size_t i = 0; to && i < to->n && !status; i++) {
        const struct eval_swap *s = &to->swaps[i];
        status = model_swap(m, s->name, s->file, s->from, why);
        if (status)
            status_context(why, "tensor '%s' of %s cannot be used in place of that of %s", s->name,
                           gguf_path(s->file), gguf_path(model_file(m)));
    }
    return status;
}

static enum status select_variant(struct eval_streams *streams, size_t variant,
                                  struct status_why *why)
{
    struct varied *v = (struct varied *)streams;
    const struct eval_variant *from = v->at;
    v->at = &v->variants->items[variant];
    if (v->at == from)
        return STATUS_OK;
    for (size_t i = 0; from && i < from->n; i++)
        kern_forget(v->backend, from->swaps[i].from->data, from->swaps[i].from->n_bytes);
    return eval_variant_enter(v->candidate, from, v->at, why);
}

static void close_varied(struct eval_streams *streams)
{
    struct varied *v = (struct varied *)streams;
    eval_cached_close(&v->cached);
    eval_cache_close(v->caches[0]);
    eval_cache_close(v->caches[1]);
    model_close(v->candidate);
    free(v);
}

static enum status open_varied(void *user, struct kern_backend *backend, struct eval_streams **out,
                               struct status_why *why)
{
    static const struct eval_streams_kind kind = {.select = select_variant,
                                                  .enter = eval_cached_enter,
                                                  .next = eval_cached_next,
                                                  .reach = eval_cached_reach,
                                                  .close = close_varied};
    const struct eval_variants *variants = user;
    const struct eval_cache_options options = {.ascending = true};
    struct varied *v = calloc(1, sizeof *v);
    if (!v)
        return status_fail(why, STATUS_MEMORY, "no memory for streams");
    *out = &v->cached.streams;
    v->cached = (struct eval_cached){.streams = {&kind, &v->candidates}, .caches = {v->caches, 2}};
    v->variants = variants;
    v->backend = backend;
    enum status status = model_share(&v->candidate, variants->candidate, why);
    v->candidates = v->candidate;
    if (!status)
        status = eval_cache_open(&v->caches[0], variants->model, &options, why);
    if (!status)
        status = eval_cache_open(&v->caches[1], v->candidate, &options, why);
    return status ? status : eval_cached_open(&v->cached, why);
}

/** The candidate with everything that variants have of one of their files. model_close() it. */
static enum status share_with(struct model **out, const struct eval_variants *variants,
                              const struct gguf_file *file, struct status_why *why)
{
    enum status status = model_share(out, variants->candidate, why);
    for (size_t v = 0; v < variants->n && !status; v++)
        for (size_t i = 0; i < variants->items[v].n && !status; i++) {
            const struct eval_swap *s = &variants->items[v].swaps[i];
            if (s->file == file)
                status = model_swap(*out, s->name, s->file, s->from, why);
        }
    return status;
}

/** With the variant that takes the most, and with what enters the layers of both models. */
static double scorer_bytes(void *user, const struct model *model, struct kern_backend *backend,
                           const struct eval_scorer_options *options)
{
    const struct eval_variants *variants = user;
    struct eval_scorer_options scorer = *options;
    scorer.streams = NULL;
    double most = eval_scorer_bytes(model, backend, &scorer);
    for (size_t i = 0; i < variants->n_files; i++) {
        struct model *all = NULL;
        if (!share_with(&all, variants, variants->files[i], NULL)) {
            const struct model *candidate = all;
            scorer.candidates = &candidate;
            most = fmax(most, eval_scorer_bytes(model, backend, &scorer));
        }
        model_close(all);
    }
    size_t width = model_residual_width(model_hparams(model)) +
                   model_residual_width(model_hparams(variants->candidate));
    return most + (double)options->max_batch * sizeof(float) * (double)width;
}

struct eval_stream_source eval_variants_source(struct eval_variants *variants)
{
    return (struct eval_stream_source){.user = variants,
                                       .files = variants->files,
                                       .n_files = variants->n_files,
                                       .open = open_varied,
                                       .scorer_bytes = scorer_bytes};
}
