#include "base/text/utf8.h"

#include <string.h>

static bool continues(char c)
{
    return ((uint8_t)c & 0xC0) == 0x80;
}

size_t base_utf8_decode(const char *p, size_t n_bytes, uint32_t *code_point)
{
    static const uint32_t smallest[5] = {0, 0, 0x80, 0x800, 0x10000};
    static const uint8_t payload[5] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    uint8_t lead = (uint8_t)p[0];
    size_t n = base_utf8_announced(p[0]);
    if (n > n_bytes || (lead >= 0x80 && lead < 0xC0) || lead >= 0xF8)
        return 0;
    uint32_t cp = lead & payload[n];
    for (size_t i = 1; i < n; i++) {
        if (!continues(p[i]))
            return 0;
        cp = cp << 6 | ((uint8_t)p[i] & 0x3F);
    }
    if (cp < smallest[n] || cp > 0x10FFFF || (cp >= 0xD800 && cp < 0xE000))
        return 0;
    if (code_point)
        *code_point = cp;
    return n;
}

size_t base_utf8_decode_last(const char *text, size_t n_bytes, uint32_t *code_point)
{
    size_t n = 1;
    while (n < 4 && n < n_bytes && continues(text[n_bytes - n]))
        n++;
    return base_utf8_decode(text + n_bytes - n, n, code_point) == n ? n : 0;
}

size_t base_utf8_encode(uint32_t cp, char out[4])
{
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    size_t n = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; cp >>= 6)
        out[i] = (char)(0x80 | (cp & 0x3F));
    static const uint8_t lead[5] = {0, 0, 0xC0, 0xE0, 0xF0};
    out[0] = (char)(lead[n] | cp);
    return n;
}

size_t base_utf8_first_bad(const char *text, size_t n_bytes)
{
    size_t i = 0;
    while (i < n_bytes) {
        uint64_t eight;
        if (n_bytes - i >= 8) { /* most text is ASCII, eight bytes at a time */
            memcpy(&eight, text + i, 8);
            if (!(eight & UINT64_C(0x8080808080808080))) {
                i += 8;
                continue;
            }
        }
        size_t n = base_utf8_decode(text + i, n_bytes - i, NULL);
        if (n == 0)
            return i;
        i += n;
    }
    return n_bytes;
}

size_t base_utf8_repair(const char *text, size_t n_bytes, char *out)
{
    size_t n_out = 0;
    while (n_bytes > 0) {
        size_t good = base_utf8_first_bad(text, n_bytes);
        if (out)
            memcpy(out + n_out, text, good);
        n_out += good;
        text += good;
        n_bytes -= good;
        if (n_bytes == 0)
            break;
        if (out)
            memcpy(out + n_out, "\xEF\xBF\xBD", 3);
        n_out += 3;
        text++;
        n_bytes--;
    }
    return n_out;
}

static uint32_t utf16_unit(const char *p, bool big_endian)
{
    const uint8_t *b = (const uint8_t *)p;
    return big_endian ? (uint32_t)b[0] << 8 | b[1] : (uint32_t)b[1] << 8 | b[0];
}

size_t base_utf8_from_utf16(const char *text, size_t n_bytes, bool big_endian, char *out,
                            size_t *n_out)
{
    size_t i = n_bytes >= 2 && utf16_unit(text, big_endian) == 0xFEFF ? 2 : 0;
    *n_out = 0;
    for (size_t n = 2; i < n_bytes; i += n, n = 2) {
        uint32_t cp = n_bytes - i >= 2 ? utf16_unit(text + i, big_endian) : 0xDC00, low = 0;
        if (cp >= 0xD800 && cp < 0xDC00 && n_bytes - i >= 4)
            low = utf16_unit(text + i + 2, big_endian);
        if (low >= 0xDC00 && low < 0xE000) {
            cp = 0x10000 + ((cp - 0xD800) << 10) + (low - 0xDC00);
            n = 4;
        } else if (cp >= 0xD800 && cp < 0xE000) {
            break;
        }
        char bytes[4];
        *n_out += base_utf8_encode(cp, out ? out + *n_out : bytes);
    }
    return i;
}

bool base_is_space(uint32_t c)
{
    return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
           c == 0x202F || c == 0x205F || c == 0x3000;
}
