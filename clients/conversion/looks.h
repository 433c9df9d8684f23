/** What a tensor that differs looks like: known mistakes are tried, and what fits is named. */
#ifndef CONVERSION_LOOKS_H
#define CONVERSION_LOOKS_H

#include "clients/conversion/compare.h"
#include "model/model.h"

/** What is known beside the tensor itself. */
struct conv_looking {
    const struct conv_work *work;
    const struct gguf_file *folder;
    const struct model_hparams *hparams; /* the folder's */
};

/**
 * Fill the look of a tensor. pair: it and what was expected; matrices: what came of that, unless
 * the shapes differ (NULL). A look is named where every value of the tensor is what it makes.
 * Fails: STATUS_CANCELLED, STATUS_MEMORY.
 */
enum status conv_look_at(struct conv_tensor *t, const struct conv_looking *looking,
                         const struct conv_pair *pair, const struct conv_sums *matrices,
                         struct status_why *why);

/** The layer of a tensor "blk.N.…"; -1: of none. rest: receives what follows; may be NULL. */
int64_t conv_layer_of(const char *name, const char **rest);

#endif
