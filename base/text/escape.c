#include "base/text/escape.h"

#include <stdint.h>
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
    static const char digits[] = "0123456789abcdef";
    size_t used = 0;
    for (size_t i = 0; i < n_bytes && used <= capacity;) {
        unsigned char first = (unsigned char)bytes[i];
        uint32_t code_point = first;
        size_t length = base_utf8_decode(bytes + i, n_bytes - i, &code_point);
        const char *escape = short_escape(first);
        const char hex[] = {'\\', 'x', digits[first >> 4], digits[first & 15], '\0'};
        if (!escape &&
            (length == 0 || code_point < 0x20 || (code_point >= 0x7f && code_point < 0xa0)))
            escape = hex;
        const char *from = escape ? escape : bytes + i;
        size_t n = escape ? strlen(escape) : length;
        for (size_t k = 0; k < n; k++, used++)
            if (used < capacity)
                out[used] = from[k];
        i += escape ? 1 : length;
    }
    return used;
}
