/** What architectures with latent attention share. */
#ifndef MODEL_ARCH_LATENT_H
#define MODEL_ARCH_LATENT_H

#include "model/arch.h"

/** Names of published tensors. The matrix that makes keys and values is cut into those of newer
 * GGUF files where it can be. */
extern const struct model_folder_name model_latent_names[];
/** Sizes of heads; key_length and value_length are those of the compressed cache in newer files. */
void model_latent_read(struct model_hparams *h, const struct model_reading *r);

#endif
