/** Opening a published folder. */
#ifndef MODEL_FOLDER_FOLDER_H
#define MODEL_FOLDER_FOLDER_H

#include "gguf/file.h"

struct model_arch;

/**
 * Open a folder as a GGUF file that has its keys and tensors.
 * archs: the architectures that it may be of, and NULL.
 * tokens: a GGUF file of the same model, or a folder, the same one as a rule, whose tokens it gets;
 *         NULL: it has none.
 * Fails: as safetensors_folder_open and gguf_open; STATUS_UNSUPPORTED (architecture, quantisation,
 *        type), STATUS_FORMAT (config.json; a tensor that has no name in GGUF, an expert that is
 *        missing).
 */
enum status model_folder_open(struct gguf_file **out, const char *path, const char *tokens,
                              const struct model_arch *const *archs, struct status_why *why);

#endif
