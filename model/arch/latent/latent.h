/** What architectures with latent attention share. */
#ifndef MODEL_ARCH_LATENT_H
#define MODEL_ARCH_LATENT_H

#include "model/arch.h"

/** Names of published tensors. The matrix that makes keys and values is cut into those of newer
 * GGUF files where it can be. */
extern const struct model_folder_name model_latent_names[];
/** Those of an indexer whose heads choose as one; and which layers have one: a list, a text of F
 * and S, or a beginning and then one of so many, where no member has another period. */
extern const struct model_folder_name model_indexer_names[];
void model_indexer_write(struct model_folder *f, uint32_t period);
/** Sizes of heads; key_length and value_length are those of the compressed cache in newer files. */
void model_latent_read(struct model_hparams *h, const struct model_reading *r);
/** Sizes of heads of layers that slide, which keys ending in _swa say. */
void model_latent_read_sliding(struct model_hparams *h, const struct model_reading *r);
/** Find whose choice each sparse layer uses: its own, or that of the nearest one before it that has
 * an indexer. usual[n_layers]: which have one where no key says it; NULL: all. */
void model_latent_read_choices(struct model_hparams *h, const struct model_reading *r,
                               const bool *usual);

#endif
