/** What the Gemmas share. */
#ifndef MODEL_ARCH_GEMMA_H
#define MODEL_ARCH_GEMMA_H

#include "model/arch.h"

/** The embedding's scale, sqrt(D). */
void model_gemma_scale(struct model_hparams *h);

/** The last layers, a key says how many, use keys and values of the last own ones of their kind. */
void model_gemma_read_shared(struct model_hparams *h, const struct model_reading *r);

/** Tables of the further input; each layer takes its columns and rows. */
void model_gemma_bind_input_ends(struct model *m);
void model_gemma_bind_input(struct model *m, size_t i);

#endif
