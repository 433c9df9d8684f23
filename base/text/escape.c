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

/** What the character or byte that `bytes` begin with is shown as. */
struct unit {
    const char *from; /* in `bytes`, in `hex`, or static */
    size_t n, n_read;
    char hex[4];
};

static void read_unit(struct unit *u, const char *bytes, size_t n_bytes)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char first = (unsigned char)bytes[0];
    uint32_t code_point = first;
    u->from = bytes;
    u->n = u->n_read = base_utf8_decode(bytes, n_bytes, &code_point);
    if (u->n && code_point >= 0x20 && (code_point < 0x7f || code_point >= 0xa0))
        return;
    const char hex[] = {'\\', 'x', digits[first >> 4], digits[first & 15]};
    memcpy(u->hex, hex, sizeof hex);
    u->from = u->hex;
    u->n = sizeof hex;
    u->n_read = 1;
}

size_t base_escape(char *out, size_t capacity, const char *bytes, size_t n_bytes)
{
    size_t used = 0;
    for (size_t i = 0; i < n_bytes && used <= capacity;) {
        struct unit u = {.from = short_escape((unsigned char)bytes[i]), .n = 2, .n_read = 1};
        if (!u.from)
            read_unit(&u, bytes + i, n_bytes - i);
        for (size_t k = 0; k < u.n; k++, used++)
            if (used < capacity)
                out[used] = u.from[k];
        i += u.n_read;
    }
    return used;
}

const char *base_printable(char *out, size_t capacity, const char *bytes, size_t n_bytes)
{
    size_t used = 0;
    for (size_t i = 0; i < n_bytes;) {
        struct unit u;
        read_unit(&u, bytes + i, n_bytes - i);
        if (used + u.n >= capacity)
            break;
        memcpy(out + used, u.from, u.n);
        used += u.n;
        i += u.n_read;
    }
    out[used] = '\0';
    return out;
}
