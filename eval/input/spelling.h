/** The text of tokens, escaped, one after the other in the same memory. */
#ifndef EVAL_INPUT_SPELLING_H
#define EVAL_INPUT_SPELLING_H

#include "model/tokenizer/tokenizer.h"

/** Bytes of a token and their escaped form, grown to the longest token met. Zero-initialise. */
struct eval_spelling {
    char *bytes, *escaped; /* escaped ends with a NUL; see base/text/escape.h */
    size_t capacity;       /* of bytes; escaped has four times as much and one */
    size_t n_escaped;
};

/** Spell a token into s->escaped. Fails: STATUS_MEMORY. */
enum status eval_spell(struct eval_spelling *s, const struct model_tokenizer *tokenizer, int32_t id,
                       struct status_why *why);
/** Spell n tokens, one after the other; the caller frees *out. Fails: STATUS_MEMORY. */
enum status eval_spell_all(char **out, const struct model_tokenizer *tokenizer, const int32_t *ids,
                           size_t n, struct status_why *why);
void eval_spelling_free(struct eval_spelling *s);

#endif
