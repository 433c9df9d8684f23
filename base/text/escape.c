#include "base/text/escape.h"

#include <stdbool.h>
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

/* Code points that are shown as they are not: controls, marks that turn the direction of writing,
 * lines' and paragraphs' ends, what takes no room (format characters, tags, variation selectors of
 * plane 14). In order. U+FE0F and the visible signs of Unicode's category Cf stay. */
static const struct {
    uint32_t first, last;
} escaped[] = {
    {0x0, 0x1f},        {0x7f, 0x9f},       {0xad, 0xad},       {0x61c, 0x61c},
    {0x180e, 0x180e},   {0x200b, 0x200f},   {0x2028, 0x202e},   {0x2060, 0x206f},
    {0xfeff, 0xfeff},   {0xfff9, 0xfffb},   {0x13430, 0x1343f}, {0x1bca0, 0x1bca3},
    {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
};

static bool is_escaped(uint32_t code_point)
{
    size_t i = 0;
    while (i < sizeof escaped / sizeof *escaped && escaped[i].last < code_point)
        i++;
    return i < sizeof escaped / sizeof *escaped && escaped[i].first <= code_point;
}

static void read_unit(struct unit *u, const char *bytes, size_t n_bytes)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char first = (unsigned char)bytes[0];
    uint32_t code_point = first;
    u->from = bytes;
    u->n = u->n_read = base_utf8_decode(bytes, n_bytes, &code_point);
    if (u->n && !is_escaped(code_point))
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
