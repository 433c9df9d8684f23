/* Blanks at the end of a text: what Python's str.isspace() is true for. */
#include <stdint.h>

#include "base/text/utf8.h"
#include "eval/input/requests.h"

static bool is_blank(uint32_t c)
{
    return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
           c == 0x202F || c == 0x205F || c == 0x3000;
}

size_t eval_trailing_blanks(struct base_string s)
{
    size_t left = s.n_bytes, n;
    uint32_t last;
    while (left && (n = base_utf8_decode_last(s.data, left, &last)) > 0 && is_blank(last))
        left -= n;
    return s.n_bytes - left;
}
