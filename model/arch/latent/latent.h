/** What architectures with latent attention share. */
#ifndef MODEL_ARCH_LATENT_H
#define MODEL_ARCH_LATENT_H

#include "model/arch.h"

/** Names of published tensors. The matrix that makes keys and values is cut into those of newer
 * GGUF files where it can be. */
extern const struct model_folder_name model_latent_names[];
/** Those of an indexer whose heads choose as one; and which layers have one. */
extern const struct model_folder_name model_indexer_names[];
void model_indexer_write(struct model_folder *f);
/** One limit of SwiGLU for all layers: a member, or 10, under a key. */
void model_limit_write(struct model_folder *f, const char *suffix);
/** Sizes of heads; key_length and value_length are those of the compressed cache in newer files. */
void model_latent_read(struct model_hparams *h, const struct model_reading *r);

#endif
