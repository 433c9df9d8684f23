/** Words in one string, separated by single blanks: how lists of options hold names. */
#ifndef CLI_OPTIONS_WORDS_H
#define CLI_OPTIONS_WORDS_H

#include <stddef.h>

/** Index of `word` among the words, or -1. The second: capital letters count as small ones. */
int cli_words_index(const char *words, const char *word);
int cli_words_index_any_case(const char *words, const char *word);

/**
 * Step through the words: sets *word and *length to the next one and returns what follows
 * it; NULL when there is none left.
 */
const char *cli_words_next(const char *words, const char **word, size_t *length);

/**
 * The candidate that `word` most likely was meant to be, or NULL if none is near.
 * candidates: separated by single blanks. nearest: receives it; `capacity` bytes.
 * distance: in: only nearer ones are taken; out: that of the result, in edited letters.
 */
const char *cli_nearest_name(const char *word, const char *candidates, char *nearest,
                             size_t capacity, size_t *distance);

#endif
