#include "model/template/value/value_text.h"

#include <locale.h>
#include <pthread.h>
#include <string.h>
#include <wctype.h>

#include "base/text/utf8.h"

size_t jinja_next(struct base_string s, size_t at, uint32_t *code_point)
{
    uint32_t c;
    size_t n = base_utf8_decode(s.data + at, s.n_bytes - at, code_point ? code_point : &c);
    return n ? n : 1;
}

size_t jinja_n_characters(struct jinja_run *r, struct base_string s)
{
    size_t n = 0;
    jinja_work(r, s.n_bytes / 16);
    for (size_t i = 0; i < s.n_bytes; i++)
        n += ((unsigned char)s.data[i] & 0xC0) != 0x80;
    return n;
}

size_t jinja_offset(struct base_string s, size_t n)
{
    size_t at = 0;
    for (; n > 0 && at < s.n_bytes; n--)
        at += jinja_next(s, at, NULL);
    return at;
}

size_t jinja_find(struct jinja_run *r, struct base_string s, struct base_string needle, size_t from)
{
    jinja_work(r, 1);
    if (needle.n_bytes > s.n_bytes - from)
        return SIZE_MAX;
    if (needle.n_bytes == 0)
        return from;
    const char *found = memmem(s.data + from, s.n_bytes - from, needle.data, needle.n_bytes);
    jinja_work(r, (found ? (size_t)(found - s.data) - from : s.n_bytes - from) / 16);
    return found ? (size_t)(found - s.data) : SIZE_MAX;
}

size_t jinja_find_last(struct jinja_run *r, struct base_string s, struct base_string needle,
                       size_t to)
{
    if (needle.n_bytes > to)
        return SIZE_MAX;
    for (size_t at = to - needle.n_bytes;; at--) {
        jinja_work(r, 1 + needle.n_bytes / 16);
        if (jinja_same(jinja_part(s, at, at + needle.n_bytes), needle))
            return at;
        if (at == 0 || r->status)
            return SIZE_MAX;
    }
}

/* Whether to strip the character of n bytes at `c`: one of `set`, or white space where it is NULL.
 */
static bool strips(struct base_string c, const struct base_string *set)
{
    uint32_t code_point = 0;
    if (set)
        return set->n_bytes && memmem(set->data, set->n_bytes, c.data, c.n_bytes);
    jinja_next(c, 0, &code_point);
    return base_is_space(code_point);
}

struct jinja_value jinja_strip(struct jinja_run *r, struct base_string s,
                               const struct jinja_value *characters, enum jinja_side side)
{
    const struct base_string *set = jinja_given(characters) ? &characters->string : NULL;
    if (set && characters->kind != JINJA_STRING)
        return JINJA_FAIL(r, STATUS_FORMAT, "characters to strip are %s, expected a string",
                          jinja_kind_name(characters));
    size_t from = 0, to = s.n_bytes, n, steps = set ? 1 + set->n_bytes / 16 : 1;
    for (; (side & JINJA_LEFT) && from < to && !r->status; from += n) {
        n = jinja_next(s, from, NULL);
        if (!strips(jinja_part(s, from, from + n), set))
            break;
        jinja_work(r, steps);
    }
    for (; (side & JINJA_RIGHT) && from < to && !r->status; to -= n) {
        n = base_utf8_decode_last(s.data + from, to - from, NULL);
        if (n == 0 || !strips(jinja_part(s, to - n, to), set))
            break;
        jinja_work(r, steps);
    }
    return jinja_of_string(jinja_part(s, from, to));
}

struct jinja_value jinja_replace(struct jinja_run *r, struct base_string s, struct base_string old,
                                 struct base_string new, int64_t limit)
{
    struct jinja_buffer out = {0};
    size_t at = 0, found;
    for (; limit != 0 && !r->status; limit--) {
        found = jinja_find(r, s, old, at);
        if (found == SIZE_MAX)
            break;
        size_t next = found + old.n_bytes;
        jinja_put(r, &out, s.data + at, found - at);
        jinja_put_string(r, &out, new);
        if (old.n_bytes == 0) { /* between characters */
            if (found == s.n_bytes)
                return jinja_of_buffer(&out);
            next = found + jinja_next(s, found, NULL);
            jinja_put(r, &out, s.data + found, next - found);
        }
        at = next;
    }
    jinja_put(r, &out, s.data + at, s.n_bytes - at);
    return jinja_of_buffer(&out);
}

/* Pieces between runs of white space. */
static struct jinja_value split_blanks(struct jinja_run *r, struct base_string s, int64_t limit)
{
    struct jinja_items pieces = {0};
    const struct jinja_value white = jinja_absent();
    for (;; limit--) {
        s = jinja_strip(r, s, &white, JINJA_LEFT).string;
        size_t end = 0;
        uint32_t c;
        for (size_t n; end < s.n_bytes; end += n) {
            n = jinja_next(s, end, &c);
            if (limit != 0 && base_is_space(c))
                break;
        }
        if (s.n_bytes == 0 || r->status)
            break;
        jinja_work(r, end / 16);
        struct base_string piece = jinja_part(s, 0, end);
        jinja_append(r, &pieces,
                     limit == 0 ? jinja_strip(r, piece, &white, JINJA_RIGHT)
                                : jinja_of_string(piece));
        s = jinja_part(s, end, s.n_bytes);
    }
    return jinja_of_items(&pieces);
}

struct jinja_value jinja_split(struct jinja_run *r, struct base_string s,
                               const struct jinja_value *separator, int64_t limit)
{
    if (!jinja_given(separator))
        return split_blanks(r, s, limit);
    struct jinja_items pieces = {0};
    size_t at = 0, found;
    if (separator->kind != JINJA_STRING || separator->string.n_bytes == 0)
        return JINJA_FAIL(r, STATUS_FORMAT,
                          "a separator is %s, expected a string that is not empty",
                          jinja_kind_name(separator));
    for (; limit != 0 && !r->status; limit--) {
        found = jinja_find(r, s, separator->string, at);
        if (found == SIZE_MAX)
            break;
        jinja_append(r, &pieces, jinja_of_string(jinja_part(s, at, found)));
        at = found + separator->string.n_bytes;
    }
    jinja_append(r, &pieces, jinja_of_string(jinja_part(s, at, s.n_bytes)));
    return jinja_of_items(&pieces);
}

struct jinja_value jinja_split_last(struct jinja_run *r, struct base_string s,
                                    struct base_string separator, int64_t limit)
{
    struct jinja_items pieces = {0};
    size_t to = s.n_bytes, found;
    for (; limit != 0 && !r->status; limit--) {
        found = jinja_find_last(r, s, separator, to);
        if (found == SIZE_MAX)
            break;
        jinja_append(r, &pieces, jinja_of_string(jinja_part(s, found + separator.n_bytes, to)));
        to = found;
    }
    jinja_append(r, &pieces, jinja_of_string(jinja_part(s, 0, to)));
    for (size_t i = 0; i < pieces.n / 2; i++) {
        struct jinja_value piece = pieces.items[i];
        pieces.items[i] = pieces.items[pieces.n - 1 - i];
        pieces.items[pieces.n - 1 - i] = piece;
    }
    return jinja_of_items(&pieces);
}

static bool ends_line(uint32_t c)
{
    return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
           c == 0x2029;
}

struct jinja_value jinja_lines(struct jinja_run *r, struct base_string s)
{
    struct jinja_items lines = {0};
    size_t from = 0;
    uint32_t c;
    for (size_t i = 0, n; i < s.n_bytes && !r->status; i += n) {
        n = jinja_next(s, i, &c);
        if (!ends_line(c))
            continue;
        jinja_append(r, &lines, jinja_of_string(jinja_part(s, from, i)));
        if (c == '\r' && i + 1 < s.n_bytes && s.data[i + 1] == '\n')
            n = 2;
        from = i + n;
    }
    if (from < s.n_bytes)
        jinja_append(r, &lines, jinja_of_string(jinja_part(s, from, s.n_bytes)));
    return jinja_of_items(&lines);
}

static locale_t unicode;
static pthread_once_t opened = PTHREAD_ONCE_INIT;

static void open_locale(void)
{
    unicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
}

/* Letters that Python makes several of, or that depend on their neighbours. */
static bool is_peculiar(uint32_t c)
{
    return c == 0xDF || c == 0x130 || c == 0x149 || (c >= 0x1C4 && c <= 0x1CC) || c == 0x1F0 ||
           (c >= 0x1F1 && c <= 0x1F3) || c == 0x390 || c == 0x3A3 || c == 0x3B0 || c == 0x587 ||
           (c >= 0x10A0 && c <= 0x10FF) || (c >= 0x13A0 && c <= 0x13FF) ||
           (c >= 0x1C90 && c <= 0x1CBF) || (c >= 0x1E96 && c <= 0x1E9E) ||
           (c >= 0x1F50 && c <= 0x1FFF) || (c >= 0xAB70 && c <= 0xABBF) ||
           (c >= 0xFB00 && c <= 0xFB17);
}

/* The capital or small form of one character. */
static uint32_t convert(struct jinja_run *r, uint32_t c, bool capital)
{
    if (c < 0x80)
        return capital ? (c >= 'a' && c <= 'z' ? c - 32 : c) : (c >= 'A' && c <= 'Z' ? c + 32 : c);
    pthread_once(&opened, open_locale);
    if (!unicode || is_peculiar(c))
        jinja_fail(r, STATUS_UNSUPPORTED, "capital and small letters of U+%04X", (unsigned)c);
    else
        c = (uint32_t)(capital ? towupper_l((wint_t)c, unicode) : towlower_l((wint_t)c, unicode));
    return c;
}

struct jinja_value jinja_case(struct jinja_run *r, struct base_string s, enum jinja_case to)
{
    struct jinja_buffer out = {0};
    for (size_t i = 0, n; i < s.n_bytes && !r->status; i += n) {
        uint32_t c;
        char bytes[4];
        n = jinja_next(s, i, &c);
        c = convert(r, c, to == JINJA_UPPER || (to == JINJA_CAPITALIZE && i == 0));
        jinja_put(r, &out, bytes, base_utf8_encode(c, bytes));
    }
    return jinja_of_buffer(&out);
}

struct jinja_value jinja_title(struct jinja_run *r, struct base_string s, const char *starts)
{
    struct jinja_buffer out = {0};
    bool begins = true;
    for (size_t i = 0; i < s.n_bytes && !r->status; i++) {
        unsigned char c = (unsigned char)s.data[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        char byte = (char)convert(r, c, begins);
        if (c >= 0x80)
            return JINJA_FAIL(r, STATUS_UNSUPPORTED, "'title' of letters beyond ASCII");
        jinja_put(r, &out, &byte, 1);
        begins = starts ? c == 0 || strchr(starts, c) || base_is_space(c) : !is_letter;
    }
    return jinja_of_buffer(&out);
}
