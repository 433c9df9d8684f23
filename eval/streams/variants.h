/**
 * Variants of a candidate: some of its tensors are another file's (model/swap.h). Each scorer has a
 * candidate of its own, in which tensors are swapped from batch to batch; what enters a layer below
 * the swapped ones is computed once.
 */
#ifndef EVAL_STREAMS_VARIANTS_H
#define EVAL_STREAMS_VARIANTS_H

#include "eval/scorer/streams.h"
#include "model/swap.h"

/** A tensor of a model, by its name, and what takes its place. */
struct eval_swap {
    const char *name;
    const struct gguf_file *file;
    const struct gguf_tensor *from;
};

struct eval_variant {
    const struct eval_swap *swaps;
    size_t n;
};

/** Everything is borrowed. files: all that the swaps name. */
struct eval_variants {
    const struct model *model, *candidate; /* the run's; the candidate is its only one */
    const struct eval_variant *items;
    size_t n;
    const struct gguf_file *const *files;
    size_t n_files;
};

/** The source of streams with these variants, which must outlive it. */
struct eval_stream_source eval_variants_source(struct eval_variants *variants);

/**
 * Make a model that is the variant `from` the variant `to`; NULL: the model itself.
 * Fails: as model_swap, with the tensor named; the model is then neither.
 */
enum status eval_variant_enter(struct model *m, const struct eval_variant *from,
                               const struct eval_variant *to, struct status_why *why);

#endif
