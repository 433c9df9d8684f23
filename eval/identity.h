/** Which vocabulary a result belongs to. */
#ifndef EVAL_IDENTITY_H
#define EVAL_IDENTITY_H

#include <stdbool.h>

#include "base/digest.h"
#include "model/model.h"

/**
 * The vocabulary's id: SHA-256 over what eval_check_same_vocab compares of tokens. Integers are
 * little-endian: u64 number of tokens, u64 rows of the head, u32 whether texts begin with BOS, i32
 * its id (-1: they do not); then for each token u64 bytes and the text.
 */
enum status eval_vocab_id(char hex[BASE_HEX], const struct model *model, struct status_why *why);

/**
 * What it would be of the first n tokens, if texts began with the token `bos` (-1: none). Those
 * that the vocabulary lacks are fillers (model_token_is_filler).
 */
enum status eval_vocab_id_with(char hex[BASE_HEX], const struct model *model, int32_t bos, size_t n,
                               struct status_why *why);

/**
 * Refuse a candidate whose vocabulary differs from the base's in size, in the text of a token,
 * in the id of BOS or in whether texts begin with it, or whose head has another length; or that
 * reads texts in another way (model_tokenizer_compare).
 * Fails: STATUS_FORMAT (the sentence names both files and the first difference), STATUS_MEMORY.
 * Cost: O(bytes of the vocabulary).
 */
enum status eval_check_same_vocab(const struct model *base, const struct model *candidate,
                                  struct status_why *why);

/**
 * The same where one may have more tokens after those that both have, which no text becomes:
 * fillers, and tokens that are unused, control or added. *n_common: how many both have.
 */
enum status eval_check_common_vocab(size_t *n_common, const struct model *base,
                                    const struct model *candidate, struct status_why *why);
/** Refuse a model whose tokens from `first` on, which `base` lacks, are others. Fails:
 * STATUS_FORMAT (the sentence names the first). */
enum status eval_check_further_tokens(const struct model *model, size_t first, const char *base,
                                      struct status_why *why);

#endif
