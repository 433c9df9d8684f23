/** The hyper-parameters that all supported architectures share, read and checked. */
#ifndef MODEL_HPARAMS_H
#define MODEL_HPARAMS_H

#include "model/keys.h"
#include "model/model.h"
#include "model/remarks.h"

/**
 * Read every hyper-parameter except n_vocab (the tokenizer's) and rope_split_halves (the
 * architecture's). Sizes are bounded here, so that no later product of them can overflow.
 * h: zero-initialised; release with model_hparams_free(), also after a failure.
 */
enum status model_hparams_read(struct model_hparams *h, const struct model_keys *keys,
                               const struct model_options *options, struct model_remarks *remarks,
                               struct status_why *why);
void model_hparams_free(struct model_hparams *h);

#endif
