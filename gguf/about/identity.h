/** Which model a file is, and which bytes. */
#ifndef GGUF_ABOUT_IDENTITY_H
#define GGUF_ABOUT_IDENTITY_H

#include "base/digest.h"
#include "gguf/file.h"

enum { GGUF_MODEL_ID_PREFIX = 65536 }; /* bytes of each tensor that the model's id covers */

/**
 * The model's id: SHA-256 over, for each shard in order, its bytes before the tensor data
 * (header and directory), then, for each tensor in the order of the directory, its first
 * 64 KiB (or all, if it has fewer), after as many bytes of its scales, of its zero points and of
 * its columns' groups, where these lie apart. Reads little of a large file: 300 tensors cost 20 MB.
 * Two files with the same id can differ only inside tensors; see gguf_file_hash.
 * Fails: STATUS_MEMORY.
 */
enum status gguf_model_id(char hex[BASE_HEX], const struct gguf_file *file, struct status_why *why);

/**
 * SHA-256 of everything: the shards' bytes one after the other, so for a file that is not
 * split what sha256sum prints. Cost: reads the whole file.
 */
enum status gguf_file_hash(char hex[BASE_HEX], const struct gguf_file *file,
                           struct status_why *why);

#endif
