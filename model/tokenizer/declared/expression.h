/** The regular expressions of tokenizer.json are Oniguruma's; these become PCRE2's. */
#ifndef MODEL_TOKENIZER_DECLARED_EXPRESSION_H
#define MODEL_TOKENIZER_DECLARED_EXPRESSION_H

#include "base/buffer.h"
#include "base/text/string.h"

/**
 * Append an expression that matches the same with PCRE2. Groups capture nothing there.
 * Fails: STATUS_UNSUPPORTED: something that the two read in different ways, or that no published
 *        tokenizer needs; the sentence has it and its place. STATUS_MEMORY.
 */
enum status model_expression_translate(struct base_buffer *out, const char *expression,
                                       struct status_why *why);

/** Append an expression that matches just this text. */
void model_expression_literal(struct base_buffer *out, struct base_string text);

#endif
