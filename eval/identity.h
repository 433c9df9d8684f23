/** What a file is, and which model and which vocabulary a result belongs to. */
#ifndef EVAL_IDENTITY_H
#define EVAL_IDENTITY_H

#include <stdbool.h>

#include "base/digest.h"
#include "gguf/file.h"
#include "model/model.h"

enum { EVAL_MODEL_ID_PREFIX = 65536 }; /* bytes of each tensor that the model's id covers */

/** Whether a file of this name exists and begins with these 8 bytes. */
bool eval_file_begins(const char *path, const char magic[8]);

/**
 * The model's id: SHA-256 over, for each shard in order, its bytes before the tensor data
 * (header and directory), then, for each tensor in the order of the directory, its first
 * 64 KiB (or all, if it has fewer). Reads little of a large file: 300 tensors cost 20 MB.
 * Two files with the same id can differ only inside tensors; see eval_file_hash.
 * Fails: STATUS_MEMORY.
 */
enum status eval_model_id(char hex[BASE_HEX], const struct gguf_file *file, struct status_why *why);

/**
 * SHA-256 of everything: the shards' bytes one after the other, so for a file that is not
 * split what sha256sum prints. Cost: reads the whole file.
 */
enum status eval_file_hash(char hex[BASE_HEX], const struct gguf_file *file,
                           struct status_why *why);

/**
 * The vocabulary's id: SHA-256 over what eval_check_same_vocab compares. Integers are
 * little-endian: u64 number of tokens, u64 rows of the head, u32 whether texts begin with BOS, i32
 * its id (-1: they do not); then for each token u64 bytes and the text.
 */
enum status eval_vocab_id(char hex[BASE_HEX], const struct model *model, struct status_why *why);

/** What it would be if texts began with the token `bos` (-1: none). */
enum status eval_vocab_id_with(char hex[BASE_HEX], const struct model *model, int32_t bos,
                               struct status_why *why);

/**
 * Refuse a candidate whose vocabulary differs from the base's in size, in the text of a token,
 * in the id of BOS or in whether texts begin with it, or whose head has another length.
 * Fails: STATUS_FORMAT (the sentence names both files and the first difference).
 * Cost: O(bytes of the vocabulary).
 */
enum status eval_check_same_vocab(const struct model *base, const struct model *candidate,
                                  struct status_why *why);

#endif
