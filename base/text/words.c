#include "base/text/words.h"

#include <string.h>
#include <strings.h>

#include "base/arithmetic.h"

const char *base_words_next(const char *words, const char **word, size_t *length)
{
    words += strspn(words, " ");
    if (!*words)
        return NULL;
    *word = words;
    *length = strcspn(words, " ");
    return words + *length;
}

static int words_index(const char *words, const char *word,
                       int (*compare)(const char *, const char *, size_t))
{
    const char *candidate;
    size_t length;
    int index = 0;
    for (; (words = base_words_next(words, &candidate, &length)); index++)
        if (length == strlen(word) && compare(candidate, word, length) == 0)
            return index;
    return -1;
}

int base_words_index(const char *words, const char *word)
{
    return words_index(words, word, strncmp);
}

int base_words_index_any_case(const char *words, const char *word)
{
    return words_index(words, word, strncasecmp);
}

enum { LONGEST = 63 };

/*
 * How many letters must be put in, taken out, replaced or swapped with their neighbour to
 * make one word of the other; three rows of the usual matrix suffice.
 */
static size_t edit_distance(const char *a, size_t n_a, const char *b, size_t n_b)
{
    size_t rows[3][LONGEST + 1];
    size_t *before = rows[0], *previous = rows[1], *current = rows[2];
    for (size_t j = 0; j <= n_b; j++)
        previous[j] = j;
    for (size_t i = 1; i <= n_a; i++) {
        current[0] = i;
        for (size_t j = 1; j <= n_b; j++) {
            size_t replaced = previous[j - 1] + (a[i - 1] != b[j - 1]);
            current[j] = base_min(replaced, base_min(previous[j], current[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                current[j] = base_min(current[j], before[j - 2] + 1);
        }
        size_t *oldest = before;
        before = previous;
        previous = current;
        current = oldest;
    }
    return previous[n_b];
}

static bool abbreviates(const char *word, const char *name, size_t n_name)
{
    size_t n_dashes = strspn(word, "-"), i = n_dashes;
    if (!word[i] || i >= n_name || strncmp(word, name, i + 1) != 0)
        return false;
    for (size_t k = i; k < n_name && word[i]; k++)
        i += word[i] == name[k];
    return !word[i];
}

const char *base_likely_name(const char *word, const char *candidates, char *nearest,
                             size_t capacity, size_t *rank)
{
    const char *result = NULL, *candidate;
    size_t length, n_word = strlen(word), n_letters = n_word - strspn(word, "-");
    size_t most = n_letters > 1 ? base_max(1, n_letters / 3) : 0; /* one letter may be any other */
    while ((candidates = base_words_next(candidates, &candidate, &length))) {
        if (n_word > LONGEST || length > LONGEST || length >= capacity)
            continue;
        bool shortened = abbreviates(word, candidate, length);
        size_t d = edit_distance(word, n_word, candidate, length);
        if ((d > most && !shortened) || 2 * d - shortened >= *rank)
            continue;
        *rank = 2 * d - shortened;
        memcpy(nearest, candidate, length);
        nearest[length] = '\0';
        result = nearest;
    }
    return result;
}

const char *base_nearest_name(const char *word, const char *candidates, char *nearest,
                              size_t capacity, size_t *distance)
{
    const char *result = NULL, *candidate;
    size_t length, n_word = strlen(word);
    while ((candidates = base_words_next(candidates, &candidate, &length))) {
        if (n_word > LONGEST || length > LONGEST || length >= capacity)
            continue;
        size_t d = edit_distance(word, n_word, candidate, length);
        if (d >= *distance)
            continue;
        *distance = d;
        memcpy(nearest, candidate, length);
        nearest[length] = '\0';
        result = nearest;
    }
    return result;
}

bool base_ends_with(const char *text, const char *ending)
{
    size_t n = strlen(text), n_ending = strlen(ending);
    return n > n_ending && strcmp(text + n - n_ending, ending) == 0;
}
