/** Variants of a model: some of its tensors are another file's (model/swap.h). */
#ifndef EVAL_RUN_VARIANT_H
#define EVAL_RUN_VARIANT_H

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
    const struct eval_variant *items;
    size_t n;
    const struct gguf_file *const *files;
    size_t n_files;
};

/**
 * Make a model that is the variant `from` the variant `to`; NULL: the model itself.
 * Fails: as model_swap, with the tensor named; the model is then neither.
 */
enum status eval_variant_enter(struct model *m, const struct eval_variant *from,
                               const struct eval_variant *to, struct status_why *why);

/**
 * The model with everything that variants have of one of their files, to ask what it takes. out:
 * model_close() it.   Fails: as model_swap, STATUS_MEMORY.
 */
enum status eval_variants_share(struct model **out, const struct model *m,
                                const struct eval_variants *variants, const struct gguf_file *file,
                                struct status_why *why);

#endif
