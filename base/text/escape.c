#include "base/text/escape.h"

#include <stdio.h>
#include <string.h>

#include "base/text/utf8.h"

/** The two-character escape of a byte, or NULL. */
static const char *short_escape(unsigned char byte)
{
    switch (byte) {
    case '\\':
        return "\\\\";
    case '\t':
        return "\\t";
    case '\n':
        return "\\n";
    case '\r':
        return "\\r";
    default:
        return NULL;
    }
}

size_t base_escape(char *out, size_t capacity, const char *bytes, size_t n_bytes)
{
    size_t used = 0;
    for (size_t i = 0; i < n_bytes;) {
        unsigned char first = (unsigned char)bytes[i];
        size_t length = base_utf8_decode(bytes + i, n_bytes - i, NULL);
        const char *escape = short_escape(first);
        char hex[5];
        if (!escape && (length == 0 || first < 0x20 || first == 0x7f)) {
            snprintf(hex, sizeof hex, "\\x%02x", first);
            escape = hex;
        }
        const char *from = escape ? escape : bytes + i;
        size_t n = escape ? strlen(escape) : length;
        for (size_t k = 0; k < n; k++, used++)
            if (used < capacity)
                out[used] = from[k];
        i += escape ? 1 : length;
    }
    return used;
}
