/* Blanks at the end of a text: what Python's str.isspace() is true for. */
#include <stdint.h>

#include "eval/units/requests.h"

static bool is_blank(uint32_t c)
{
    return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
           c == 0x202F || c == 0x205F || c == 0x3000;
}

/** The last character of a text of one byte or more; *n_bytes: its size. No blank has 4 bytes. */
static uint32_t last_character(const unsigned char *text, size_t n, size_t *n_bytes)
{
    const unsigned char *end = text + n;
    *n_bytes = 1;
    if (end[-1] < 0x80)
        return end[-1];
    if (n >= 2 && (end[-2] & 0xE0) == 0xC0) {
        *n_bytes = 2;
        return (end[-2] & 0x1Fu) << 6 | (end[-1] & 0x3Fu);
    }
    if (n >= 3 && (end[-3] & 0xF0) == 0xE0) {
        *n_bytes = 3;
        return (end[-3] & 0x0Fu) << 12 | (end[-2] & 0x3Fu) << 6 | (end[-1] & 0x3Fu);
    }
    return UINT32_MAX;
}

size_t eval_trailing_blanks(struct base_string s)
{
    size_t n = s.n_bytes, n_last;
    while (n && is_blank(last_character((const unsigned char *)s.data, n, &n_last)))
        n -= n_last;
    return s.n_bytes - n;
}
