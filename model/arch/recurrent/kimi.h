/** What architectures with Kimi's delta net share. */
#ifndef MODEL_ARCH_KIMI_H
#define MODEL_ARCH_KIMI_H

#include "model/arch.h"

/** Sizes of the delta nets, which have the heads of attention. */
void model_kimi_read(struct model_hparams *h, const struct model_reading *r);
/** For architectures that have it: the least logarithm of a decay, below 0; without its key none.
 */
void model_kimi_bound_read(struct model_hparams *h, const struct model_reading *r);

/** Names of published tensors; which layers attend, by a list of either form; and sizes, by members
 * in a group or as transformers saves them. */
extern const struct model_folder_name model_kimi_names[];
void model_kimi_heads(const struct model_folder *f, struct model_folder_heads *of);
void model_kimi_write(struct model_folder *f);

#endif
