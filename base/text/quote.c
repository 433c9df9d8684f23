#include "base/text/quote.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

const char *base_quote(struct base_quoted *quoted, struct base_string bytes)
{
    /* Kept free: the longest escape, dots, the closing quote and the NUL. */
    const size_t limit = sizeof quoted->text - (sizeof "\\xNN...'" - 1) - 1;
    size_t used = 0;
    size_t i = 0;
    quoted->text[used++] = '\'';
    for (; i < bytes.n_bytes && used <= limit; i++) {
        unsigned char c = (unsigned char)bytes.data[i];
        if (c >= 0x20 && c < 0x7f && c != '\'' && c != '\\')
            quoted->text[used++] = (char)c;
        else
            used += (size_t)snprintf(quoted->text + used, 5, "\\x%02x", c);
    }
    snprintf(quoted->text + used, sizeof quoted->text - used, "%s",
             i < bytes.n_bytes ? "...'" : "'");
    return quoted->text;
}

void base_list_name(char *list, size_t capacity, const char *name)
{
    static const char rest[] = ", ...";
    size_t used = strlen(list), n = strlen(name) + 2;
    bool full = used >= sizeof rest - 1 && strcmp(list + used - (sizeof rest - 1), rest) == 0;
    full |= strcmp(list, rest + 2) == 0;
    if (!full && used + n + sizeof rest <= capacity)
        snprintf(list + used, capacity - used, "%s%s", used ? ", " : "", name);
    else if (!full)
        snprintf(list + used, capacity - used, "%s", used ? rest : rest + 2);
}
