/** Words in one string, separated by single blanks; the name that a wrong one is nearest to. */
#ifndef BASE_TEXT_WORDS_H
#define BASE_TEXT_WORDS_H

#include <stdbool.h>

#include <stddef.h>

/** Index of `word` among the words, or -1. The second: capital letters count as small ones. */
int base_words_index(const char *words, const char *word);
int base_words_index_any_case(const char *words, const char *word);

/**
 * Step through the words: sets *word and *length to the next one and returns what follows
 * it; NULL when there is none left.
 */
const char *base_words_next(const char *words, const char **word, size_t *length);

/**
 * The candidate that `word` most likely was meant to be, or NULL if none is near.
 * candidates: separated by single blanks. nearest: receives it; `capacity` bytes.
 * distance: in: only nearer ones are taken; out: that of the result, in edited letters.
 */
const char *base_nearest_name(const char *word, const char *candidates, char *nearest,
                              size_t capacity, size_t *distance);

/**
 * The same for a word that a person typed: a candidate that is one letter in three away at most, or
 * that the word abbreviates: it begins as the candidate does, after dashes, and its letters come in
 * the candidate in their order, as "ppl" in "perplexity". The nearest is taken, of equals one that
 * is abbreviated.   rank: in: only better ones are taken, SIZE_MAX for the first list; out: the
 * result's. Returns nearest, or NULL.
 */
const char *base_likely_name(const char *word, const char *candidates, char *nearest,
                             size_t capacity, size_t *rank);

/** Whether a text ends so, with something in front. */
bool base_ends_with(const char *text, const char *ending);

#endif
