/** The tokens of a published folder, as the keys tokenizer.* of a GGUF file. */
#ifndef MODEL_FOLDER_TOKENS_TOKENS_H
#define MODEL_FOLDER_TOKENS_TOKENS_H

#include "gguf/file.h"

/**
 * Make a file in memory of tokenizer.json, or else tokenizer.model, and the small files beside it.
 * n_rows: of the embedding; the vocabulary gets as many tokens. 0: as many as it has.
 * Fails: STATUS_UNSUPPORTED (neither of them, a part of it that is not read; the sentence names
 *        it, and what to do), STATUS_FORMAT, STATUS_IO, STATUS_MEMORY.
 */
enum status model_folder_tokens(struct gguf_file **out, const char *folder, uint64_t n_rows,
                                struct status_why *why);

#endif
