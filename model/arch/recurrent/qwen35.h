/** What architectures share that have the delta nets of Qwen 3.5. */
#ifndef MODEL_ARCH_RECURRENT_QWEN35_H
#define MODEL_ARCH_RECURRENT_QWEN35_H

#include "model/folder/map.h"
#include "model/hparams/read.h"

/** Sizes of delta nets, and which layers are such. */
void model_qwen35_read(struct model_hparams *h, const struct model_reading *r);

extern const struct model_arch_key model_qwen35_keys[];
/** Names in folders: of delta nets and norms; of products of delta nets that are apart. */
extern const struct model_folder_name model_qwen35_names[], model_qwen35_apart[];
/**
 * Write sizes of delta nets, and which layers are such. kinds: the words of `layer_types`, of which
 * the first is theirs. Their value heads stay in the order in which they are stored.
 */
void model_qwen35_write(struct model_folder *f, const char *kinds);

/** How folders of Qwen 3.8 Flash Next name and say things. */
extern const struct model_folder_map model_qwen4exp_folder;

#endif
