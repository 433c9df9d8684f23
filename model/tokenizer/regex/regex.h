/** Regular expressions over texts of well-formed UTF-8; PCRE2 runs them. */
#ifndef MODEL_TOKENIZER_REGEX_REGEX_H
#define MODEL_TOKENIZER_REGEX_REGEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text/string.h"

/** What the tokenizers take as white space, Unicode's White_Space: as items of a set. */
extern const char model_regex_white_space[];

/**
 * Compile an expression, in which \s and \S mean that set. of_lines: ^ and $ are also the ends of
 * lines.   out: released with model_regex_free.   Fails: STATUS_UNSUPPORTED (PCRE2 does not take
 * it; the sentence says why), STATUS_MEMORY.
 */
enum status model_regex_compile(void **out, const char *expression, bool of_lines,
                                struct status_why *why);
void model_regex_free(void *code);

/** What matching works with: zero-initialise, release with model_regex_run_free. */
struct model_regex_run {
    void *data, *context, *stack; /* PCRE2's; made by the first match */
};

/** A match of the bytes [begin, end), and where its first group begins: `begin` without one. */
struct model_regex_match {
    size_t begin, end, group;
    bool found, has_group;
};

/**
 * Find the first match that begins at `from` or after it.
 * limit: how many steps PCRE2 may take from each place where a match may begin; UINT32_MAX: any.
 * Fails: STATUS_UNSUPPORTED (PCRE2 gives up: the sentence has the place, and why), STATUS_MEMORY.
 */
enum status model_regex_find(const void *code, struct model_regex_run *run, struct base_string text,
                             size_t from, uint32_t limit, struct model_regex_match *match,
                             struct status_why *why);
void model_regex_run_free(struct model_regex_run *run);

#endif
