/** What architectures share that have the delta nets of Qwen 3.5. */
#ifndef MODEL_ARCH_RECURRENT_QWEN35_H
#define MODEL_ARCH_RECURRENT_QWEN35_H

#include "model/hparams/read.h"

/** Sizes of delta nets, and which layers are such. */
void model_qwen35_read(struct model_hparams *h, const struct model_reading *r);

#endif
