/** Whether two models speak of the same tokens, so that their distributions can be compared. */
#ifndef EVAL_REFERENCE_SAME_VOCAB_H
#define EVAL_REFERENCE_SAME_VOCAB_H

#include "model/model.h"

/**
 * Refuse a candidate whose vocabulary differs from the base's in size, in the text of a token,
 * in the id of BOS or in whether texts begin with it, or whose head has another length.
 * Fails: STATUS_FORMAT (the sentence names both files and the first difference).
 * Cost: O(bytes of the vocabulary).
 */
enum status eval_check_same_vocab(const struct model *base, const struct model *candidate,
                                  struct status_why *why);

#endif
