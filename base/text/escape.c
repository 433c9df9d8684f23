#include "base/text/escape.h"

#include <stdio.h>
#include <string.h>

/** Bytes of the valid UTF-8 character at s (of n bytes), 0 if there is none. */
static size_t utf8_length(const unsigned char *s, size_t n)
{
    if (s[0] < 0x80)
        return 1;
    size_t length = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || length > n)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    /* Longer than need be, a surrogate, or beyond U+10FFFF. */
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return length;
}

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
        const unsigned char *s = (const unsigned char *)bytes + i;
        size_t length = utf8_length(s, n_bytes - i);
        const char *escape = short_escape(*s);
        char hex[5];
        if (!escape && (length == 0 || *s < 0x20 || *s == 0x7f)) {
            snprintf(hex, sizeof hex, "\\x%02x", *s);
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
