#include "model/tokenizer/declared/expression.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/text/quote.h"
#include "base/text/utf8.h"
#include "model/tokenizer/regex/regex.h"

/* Oniguruma's \w, as items of a set. */
#define WORD                                                                                       \
    "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}\\x{24B6}-\\x{24E9}"     \
    "\\x{1F130}-\\x{1F149}\\x{1F150}-\\x{1F169}\\x{1F170}-\\x{1F189}"

struct reading {
    const char *whole, *at;
    struct base_buffer *out;
    struct status_why *why;
};

static enum status refuse(const struct reading *r, const char *at, size_t n_bytes)
{
    struct base_quoted shown;
    return status_fail(
        r->why, STATUS_UNSUPPORTED, "has %s at byte %zu of its expression, which is not read",
        base_quote(&shown, (struct base_string){at, n_bytes}), (size_t)(at - r->whole));
}

static void put(struct reading *r, const char *text)
{
    base_buffer_add(r->out, text, strlen(text));
}

/** Copy the next n bytes. */
static enum status copy(struct reading *r, size_t n)
{
    base_buffer_add(r->out, r->at, n);
    r->at += n;
    return STATUS_OK;
}

/** \p{Name}: a category of one or two letters, or a script, of which PCRE2 has two kinds. */
static enum status read_property(struct reading *r)
{
    static const char *const scripts[] = {
        "Han",    "Hiragana", "Katakana", "Hangul", "Thai",       "Lao",      "Khmer",   "Myanmar",
        "Arabic", "Hebrew",   "Latin",    "Greek",  "Devanagari", "Cyrillic", "Bengali", "Tamil"};
    const char *name = r->at + 3, *end = r->at[2] == '{' ? strchr(name, '}') : NULL;
    size_t n = end ? (size_t)(end - name) : 0;
    if (n >= 1 && n <= 2 && isupper((unsigned char)name[0]) && (n < 2 || islower(name[1])))
        return copy(r, n + 4);
    for (size_t i = 0; n && i < sizeof scripts / sizeof *scripts; i++)
        if (strlen(scripts[i]) == n && strncmp(scripts[i], name, n) == 0) {
            base_buffer_format(r->out, "\\%c{sc:%s}", r->at[1], scripts[i]);
            r->at = end + 1;
            return STATUS_OK;
        }
    return refuse(r, r->at, end && n < 32 ? n + 4 : 2);
}

/** \x{H...}, \xHH, \uHHHH. */
static enum status read_number(struct reading *r)
{
    bool braces = r->at[1] == 'x' && r->at[2] == '{';
    const char *digits = r->at + 2 + braces;
    size_t n = 0, most = braces ? 6 : r->at[1] == 'x' ? 2 : 4;
    while (n < most && isxdigit((unsigned char)digits[n]))
        n++;
    if (n == 0 || (braces ? digits[n] != '}' : n != most))
        return refuse(r, r->at, 2);
    base_buffer_format(r->out, "\\x{%.*s}", (int)n, digits);
    r->at = digits + n + braces;
    return STATUS_OK;
}

/** A backslash and what belongs to it. \S within a set is the caller's. */
static enum status read_escape(struct reading *r, bool in_set)
{
    char c = r->at[1];
    if (c == 'p' || c == 'P')
        return read_property(r);
    if (c == 'x' || c == 'u')
        return read_number(r);
    if (c && (strchr("sdDtnrf", c) || (!in_set && strchr("SAZzG", c)) || ispunct((unsigned char)c)))
        return copy(r, 2);
    if (c == 'v')
        put(r, "\\x0B");
    else if (c == 'w')
        put(r, in_set ? WORD : "[" WORD "]");
    else if (c == 'W' && !in_set)
        put(r, "[^" WORD "]");
    else if (c == 'b' && !in_set)
        put(r, "(?:(?<=[" WORD "])(?![" WORD "])|(?<![" WORD "])(?=[" WORD "]))");
    else
        return refuse(r, r->at, c ? 2 : 1);
    r->at += 2;
    return STATUS_OK;
}

/** The bracket of a plain set in a set, as in [a[bc]], whose items are the outer set's, too. */
static bool joins(const char *at, bool inner)
{
    bool right = inner ? *at == ']' : *at == '[' && !strchr("^:[]&", at[1]);
    return right && at[-1] != '-' && at[1] != '-'; /* else of ranges beside it */
}

/**
 * A set in brackets. \S in it is no item that PCRE2 could be told exactly, so the set is taken
 * apart: what is no white space, or what is and is none of the other items.
 */
static enum status read_set(struct reading *r)
{
    const char *begin = r->at;
    struct base_buffer items = {0}, *out = r->out;
    enum status status = STATUS_OK;
    bool negated = begin[1] == '^', solid = false;
    bool inner = false;
    r->at += 1 + negated;
    r->out = &items;
    for (const char *first = r->at;
         !status && *r->at && (*r->at != ']' || r->at == first || inner);) {
        if (r->at[0] == '\\' && r->at[1] == 'S') {
            solid = true;
            r->at += 2;
        } else if (*r->at == '\\') {
            status = read_escape(r, true);
        } else if (joins(r->at, inner)) {
            inner = !inner;
            r->at++;
        } else if (*r->at == '[' || *r->at == ']' || strncmp(r->at, "&&", 2) == 0) {
            /* Other sets in a set, their intersection; ] in front is read in different ways. */
            status = refuse(r, r->at, *r->at == '&' ? 2 : 1);
        } else {
            status = copy(r, 1);
        }
    }
    r->out = out;
    if (!status && *r->at != ']')
        status = refuse(r, begin, 1);
    if (!status) {
        base_buffer_add(&items, "", 1);
        bool has = items.n > 1;
        if (!solid)
            base_buffer_format(out, "[%s%s]", negated ? "^" : "", items.data);
        else if (negated)
            base_buffer_format(out, "(?:%s%s%s[%s])", has ? "(?![" : "", has ? items.data : "",
                               has ? "])" : "", model_regex_white_space);
        else
            base_buffer_format(out, "(?:[^%s]%s%s%s)", model_regex_white_space, has ? "|[" : "",
                               has ? items.data : "", has ? "]" : "");
        r->at++;
    }
    if (items.failed)
        out->failed = true;
    base_buffer_free(&items);
    return status;
}

static enum status read_group(struct reading *r)
{
    static const char *const known[] = {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strncmp(r->at, known[i], strlen(known[i])) == 0)
            return copy(r, strlen(known[i]));
    if (strncmp(r->at, "(?i)", 4) == 0 && r->at == r->whole)
        return copy(r, 4);
    if (r->at[1] == '?' || r->at[1] == '*')
        return refuse(r, r->at, strnlen(r->at, 4));
    put(r, "(?:");
    r->at++;
    return STATUS_OK;
}

/** {n}, {n,}, {n,m}, {,m}; anything else after { is a letter. */
static enum status read_count(struct reading *r)
{
    const char *at = r->at + 1, *comma;
    while (isdigit((unsigned char)*at))
        at++;
    comma = *at == ',' ? at++ : NULL;
    while (comma && isdigit((unsigned char)*at))
        at++;
    size_t n = (size_t)(at - r->at);
    if (*at != '}' || n < 2 || (comma && n < 3)) {
        put(r, "\\{");
        r->at++;
        return STATUS_OK;
    }
    if (at[1] == '+' || (at[1] == '?' && !comma)) /* possessive there, and here a second count */
        return refuse(r, r->at, n + 2);
    base_buffer_format(r->out, "{%s%.*s", comma == r->at + 1 ? "0" : "", (int)n, r->at + 1);
    r->at = at + 1;
    return STATUS_OK;
}

enum status model_expression_translate(struct base_buffer *out, const char *expression,
                                       struct status_why *why)
{
    enum { MAX_BYTES = 1 << 16 };
    struct reading r = {expression, expression, out, why};
    enum status status = STATUS_OK;
    if (strlen(expression) > MAX_BYTES)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "has an expression of %zu bytes, expected at most %d",
                           strlen(expression), (int)MAX_BYTES);
    while (*r.at && !status) {
        if (*r.at == '\\')
            status = read_escape(&r, false);
        else if (*r.at == '[')
            status = read_set(&r);
        else if (*r.at == '(')
            status = read_group(&r);
        else if (*r.at == '{')
            status = read_count(&r);
        else
            status = copy(&r, 1);
    }
    return status ? status : base_buffer_check(out, "an expression", why);
}

void model_expression_literal(struct base_buffer *out, struct base_string text)
{
    for (size_t i = 0, n; i < text.n_bytes; i += n) {
        uint32_t c = 0;
        n = base_utf8_decode(text.data + i, text.n_bytes - i, &c);
        base_buffer_format(out, "\\x{%X}", c);
        n = n ? n : 1;
    }
}
