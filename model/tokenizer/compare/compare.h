/** Whether two tokenizers read texts alike. */
#ifndef MODEL_TOKENIZER_COMPARE_H
#define MODEL_TOKENIZER_COMPARE_H

#include "model/tokenizer/tokenizer.h"

enum { MODEL_DIFFERENCE_BYTES = 160 };

/** What tells two tokenizers apart, printable. All of it is empty where nothing does. */
struct model_difference {
    /* The key that says so, and what the two have there; empty where no key is known to. */
    char key[MODEL_DIFFERENCE_BYTES], values[2][MODEL_DIFFERENCE_BYTES];
    /* The first text of the set that becomes other ids, from that place on, and the ids; empty
     * where the whole set becomes the same. */
    char text[MODEL_DIFFERENCE_BYTES], ids[2][MODEL_DIFFERENCE_BYTES];
};

bool model_difference_is_none(const struct model_difference *d);

/** The beginning of a text as such a comparison shows it, and of the ids from one on; "nothing"
 * where there are none. */
void model_difference_show(char out[MODEL_DIFFERENCE_BYTES], struct base_string text);
void model_difference_ids(char out[MODEL_DIFFERENCE_BYTES], const struct model_tokens *tokens,
                          size_t from);

/** A row that no token has, as programs call it: [PAD32000]. It is never met in a text. */
bool model_token_is_filler(const struct model_tokenizer *t, int32_t id);

/**
 * Compare two tokenizers, whose tokens' texts are compared elsewhere; those that only one has are
 * not looked at. They are the same
 * where they have the same ids for a set of texts (model_probe), recognise the same tokens in raw
 * text, and merge in the same order. So another name of the same pre-tokeniser is no difference,
 * nor is another type that has no effect, nor are rows that no token has.
 * Fails: STATUS_MEMORY; as model_tokenize.
 * Cost: O(bytes of the vocabulary); where one takes whole pieces and the other merges them, the
 *       tokenising of each token.
 */
enum status model_tokenizer_compare(struct model_difference *out, const struct model_tokenizer *a,
                                    const struct model_tokenizer *b, struct status_why *why);

/**
 * The texts that are tried, which tell all known pre-tokenisers apart; data NULL past the end. All
 * are in the form NFC, so that a normaliser does not show.
 */
struct base_string model_probe(size_t i);

/**
 * The names that GGUF has for how a tokenizer cuts the set of texts, one after the other; empty
 * where it has none.   Fails: STATUS_MEMORY; as model_tokenize.
 */
enum status model_tokenizer_names(char out[MODEL_DIFFERENCE_BYTES], const struct model_tokenizer *t,
                                  struct status_why *why);

#endif
