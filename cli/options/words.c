#include "cli/options/words.h"

#include <string.h>

const char *cli_words_next(const char *words, const char **word, size_t *length)
{
    words += strspn(words, " ");
    if (!*words)
        return NULL;
    *word = words;
    *length = strcspn(words, " ");
    return words + *length;
}

int cli_words_index(const char *words, const char *word)
{
    const char *candidate;
    size_t length;
    int index = 0;
    for (; (words = cli_words_next(words, &candidate, &length)); index++)
        if (length == strlen(word) && memcmp(candidate, word, length) == 0)
            return index;
    return -1;
}
