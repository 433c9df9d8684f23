#include "model/template/parse/lexer.h"

#include <errno.h>
#include <stdlib.h>

#include "base/text/quote.h"
#include "base/text/utf8.h"
#include "model/template/value/value_text.h"

struct lexer {
    struct jinja_run *r;
    struct base_string source; /* lines end with \n; the last newline is dropped */
    size_t at;
    struct jinja_token *tokens;
    size_t n, capacity;
    char brackets[JINJA_MAX_DEPTH]; /* that are open within a tag */
    size_t n_brackets;
};

static bool is_next(const struct lexer *x, size_t at, const char *word)
{
    size_t n = strlen(word);
    return x->source.data && n <= x->source.n_bytes - at &&
           memcmp(x->source.data + at, word, n) == 0;
}

static void add(struct lexer *x, enum jinja_token_kind kind, struct base_string text)
{
    x->tokens = jinja_grow(x->r, x->tokens, x->n, &x->capacity, sizeof *x->tokens);
    if (x->n < x->capacity)
        x->tokens[x->n++] = (struct jinja_token){.kind = kind, .line = x->r->line, .text = text};
}

/* Go on to `to`, counting lines. */
static void advance(struct lexer *x, size_t to)
{
    for (; x->at < to; x->at++)
        x->r->line += x->source.data[x->at] == '\n';
}

static size_t after_blanks(const struct lexer *x, size_t at)
{
    uint32_t c;
    while (at < x->source.n_bytes) {
        size_t n = jinja_next(x->source, at, &c);
        if (!base_is_space(c))
            break;
        at += n;
    }
    return at;
}

/* Where the text goes on after a tag that ended with `sign` before `at`. */
static size_t after_tag(const struct lexer *x, size_t at, char sign, bool is_print)
{
    if (sign == '-')
        return after_blanks(x, at);
    return at + (!is_print && sign != '+' && is_next(x, at, "\n"));
}

/*
 * The text up to `to`, where a tag with this sign begins: with '-' without the white space that it
 * ends with, else, before a statement or a comment, without the blanks of a line of which the tag
 * is the first.
 */
static void add_text(struct lexer *x, size_t to, char sign, bool is_print)
{
    const struct jinja_value white = jinja_absent();
    struct base_string text = jinja_part(x->source, x->at, to);
    if (sign == '-') {
        text = jinja_strip(x->r, text, &white, JINJA_RIGHT).string;
    } else if (sign != '+' && !is_print) {
        size_t line = text.n_bytes;
        while (line > 0 && text.data[line - 1] != '\n')
            line--;
        bool starts = line > 0 || x->at == 0 || x->source.data[x->at - 1] == '\n';
        struct base_string rest = jinja_part(text, line, text.n_bytes);
        if (starts && jinja_strip(x->r, rest, &white, JINJA_LEFT).string.n_bytes == 0)
            text = jinja_part(text, 0, line);
    }
    if (text.n_bytes)
        add(x, JINJA_TOKEN_TEXT, text);
    advance(x, to);
}

static char sign_at(const struct lexer *x, size_t at)
{
    return is_next(x, at, "-") ? '-' : is_next(x, at, "+") ? '+' : '\0';
}

static void lex_comment(struct lexer *x, size_t from)
{
    size_t end = jinja_find(x->r, x->source, (struct base_string){"#}", 2}, from);
    if (end == SIZE_MAX) {
        jinja_fail(x->r, STATUS_FORMAT, "the comment is not closed");
        return;
    }
    char sign = end > from ? x->source.data[end - 1] : '\0';
    advance(x, after_tag(x, end + 2, sign, false));
}

/* Whether "raw" or "endraw" fills the tag whose inside begins at `at`; *end: after the tag's sign
 * and "%}", *sign: that sign. */
static bool is_word_tag(const struct lexer *x, size_t at, const char *word, size_t *end, char *sign)
{
    at = after_blanks(x, at);
    if (!is_next(x, at, word))
        return false;
    at = after_blanks(x, at + strlen(word));
    *sign = sign_at(x, at);
    *end = at + (*sign != '\0') + 2;
    return is_next(x, at + (*sign != '\0'), "%}");
}

static void lex_raw(struct lexer *x, size_t from, char sign)
{
    size_t tag, end = 0;
    advance(x, sign == '-' ? after_blanks(x, from) : from);
    for (size_t at = x->at;; at = tag + 2) {
        tag = jinja_find(x->r, x->source, (struct base_string){"{%", 2}, at);
        if (tag == SIZE_MAX) {
            jinja_fail(x->r, STATUS_FORMAT, "'raw' is not closed");
            return;
        }
        char before = sign_at(x, tag + 2);
        if (is_word_tag(x, tag + 2 + (before != '\0'), "endraw", &end, &sign)) {
            add_text(x, tag, before, false);
            advance(x, after_tag(x, end, sign, false));
            return;
        }
    }
}

/* The character of an escape that counts `digits` in `base`, *at after the letter. */
static void put_code(struct lexer *x, struct jinja_buffer *out, size_t *at, size_t digits, int base)
{
    char text[9] = "", bytes[4], *end = text;
    for (size_t i = 0; i < digits && *at < x->source.n_bytes; i++) {
        char c = x->source.data[*at];
        if (base == 8 && (c < '0' || c > '7'))
            break;
        text[i] = c;
        ++*at;
    }
    unsigned long c = strtoul(text, &end, base);
    bool is_number = end > text && !*end && (base == 8 || (size_t)(end - text) == digits);
    if (!is_number || text[0] == '-' || text[0] == '+' || c > 0x10FFFF ||
        (c >= 0xD800 && c < 0xE000))
        jinja_fail(x->r, STATUS_FORMAT, "an escape is no character");
    else
        jinja_put(x->r, out, bytes, base_utf8_encode((uint32_t)c, bytes));
}

/* One escape of a string; *at is after the backslash. */
static void put_escape(struct lexer *x, struct jinja_buffer *out, size_t *at)
{
    static const char from[] = "abfnrtv\\'\"\n", to[] = "\a\b\f\n\r\t\v\\'\"";
    char c = x->source.data[*at];
    const char *found = c ? strchr(from, c) : NULL;
    ++*at;
    if (c == '\n')
        return;
    if (found)
        jinja_put(x->r, out, &to[found - from], 1);
    else if (c == 'x' || c == 'u' || c == 'U')
        put_code(x, out, at, c == 'x' ? 2 : c == 'u' ? 4 : 8, 16);
    else if (c >= '0' && c <= '7')
        put_code(x, out, (--*at, at), 3, 8);
    else if (c == 'N' || (unsigned char)c >= 0x80)
        jinja_fail(x->r, STATUS_UNSUPPORTED, "the escape '\\%c' is not supported",
                   c == 'N' ? c : '?');
    else
        jinja_put(x->r, out, x->source.data + *at - 2, 2);
}

static void lex_string(struct lexer *x)
{
    struct jinja_buffer out = {0};
    char quote = x->source.data[x->at];
    size_t at = x->at + 1;
    while (at < x->source.n_bytes && x->source.data[at] != quote && !x->r->status) {
        if (x->source.data[at] == '\\' && at + 1 < x->source.n_bytes) {
            at++;
            put_escape(x, &out, &at);
        } else {
            jinja_put(x->r, &out, x->source.data + at++, 1);
        }
    }
    if (at >= x->source.n_bytes)
        jinja_fail(x->r, STATUS_FORMAT, "a string is not closed");
    add(x, JINJA_TOKEN_CONSTANT, (struct base_string){0});
    if (x->r->status)
        return;
    x->tokens[x->n - 1].constant = jinja_of_buffer(&out);
    advance(x, at + 1);
}

static bool is_digit(const struct lexer *x, size_t at)
{
    return at < x->source.n_bytes && x->source.data[at] >= '0' && x->source.data[at] <= '9';
}

static void lex_number(struct lexer *x)
{
    char text[400];
    size_t n = 0, at = x->at, exponent;
    bool is_real = false;
    bool is_index = at > 0 && x->source.data[at - 1] == '.'; /* x.0.1 */
    while (at < x->source.n_bytes && n + 1 < sizeof text) {
        char c = x->source.data[at];
        if (c == '.' && !is_real && !is_index && is_digit(x, at + 1))
            is_real = true;
        else if (!is_digit(x, at) && !(c == '_' && is_digit(x, at + 1)))
            break;
        if (c != '_')
            text[n++] = c;
        at++;
    }
    exponent = at + 1 + (at + 1 < x->source.n_bytes && strchr("+-", x->source.data[at + 1]));
    if (!is_index && (is_next(x, at, "e") || is_next(x, at, "E")) && is_digit(x, exponent)) {
        is_real = true;
        while (n + 1 < sizeof text && (at < exponent || is_digit(x, at)))
            text[n++] = x->source.data[at++];
    }
    text[n] = '\0';
    errno = 0;
    long long integer = is_real ? 0 : strtoll(text, NULL, 10);
    if (errno || is_next(x, at, "x") || is_next(x, at, "o") || is_next(x, at, "b"))
        jinja_fail(x->r, STATUS_UNSUPPORTED, "the number %.40s is not supported", text);
    add(x, JINJA_TOKEN_CONSTANT, jinja_part(x->source, x->at, at));
    if (x->r->status)
        return;
    x->tokens[x->n - 1].constant = is_real ? jinja_real(strtod(text, NULL)) : jinja_int(integer);
    advance(x, at);
}

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           (unsigned char)c >= 0x80;
}

static void lex_operator(struct lexer *x)
{
    static const char *const operators[] = {"==", "!=", "<=", ">=", "//", "**"};
    size_t n = 1;
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (is_next(x, x->at, operators[i]))
            n = 2;
    char c = x->source.data[x->at];
    if (!c || !strchr("+-*/%~[](){}<>=.:|,;!", c) || (c == '!' && n == 1)) {
        struct base_quoted quoted;
        jinja_fail(x->r, STATUS_FORMAT, "unexpected %s",
                   base_quote(&quoted, jinja_part(x->source, x->at, x->at + 1)));
    }
    if (strchr("([{", c)) {
        if (x->n_brackets == sizeof x->brackets)
            jinja_fail(x->r, STATUS_UNSUPPORTED, "too many brackets are open");
        else
            x->brackets[x->n_brackets++] = c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (strchr(")]}", c) && (!x->n_brackets || x->brackets[--x->n_brackets] != c)) {
        jinja_fail(x->r, STATUS_FORMAT, "unexpected '%c'", c);
    }
    add(x, JINJA_TOKEN_OPERATOR, jinja_part(x->source, x->at, x->at + n));
    advance(x, x->at + n);
}

/* The inside of a tag, up to and with its end. */
static void lex_tag(struct lexer *x, bool is_print)
{
    const char *close = is_print ? "}}" : "%}";
    x->n_brackets = 0;
    for (;;) {
        char sign = sign_at(x, x->at);
        size_t end = x->at + (sign != '\0' && !(is_print && sign == '+'));
        if (x->n_brackets == 0 && is_next(x, end, close)) {
            add(x, JINJA_TOKEN_CLOSE, jinja_part(x->source, end, end + 2));
            advance(x, after_tag(x, end + 2, sign, is_print));
            return;
        }
        size_t next = after_blanks(x, x->at);
        if (next >= x->source.n_bytes)
            jinja_fail(x->r, STATUS_FORMAT, "a tag is not closed: expected '%s'", close);
        if (x->r->status)
            return;
        if (next > x->at) {
            advance(x, next);
            continue;
        }
        char c = x->source.data[x->at];
        for (end = x->at; end < x->source.n_bytes && is_name_byte(x->source.data[end]);)
            end++;
        if (c == '"' || c == '\'') {
            lex_string(x);
        } else if (is_digit(x, x->at)) {
            lex_number(x);
        } else if (end > x->at) {
            add(x, JINJA_TOKEN_NAME, jinja_part(x->source, x->at, end));
            advance(x, end);
        } else {
            lex_operator(x);
        }
    }
}

/* The next tag and the text before it; false at the end. */
static bool lex_next(struct lexer *x)
{
    size_t tag = x->at, end;
    for (;; tag++) {
        tag = jinja_find(x->r, x->source, (struct base_string){"{", 1}, tag);
        if (tag == SIZE_MAX || is_next(x, tag, "{{") || is_next(x, tag, "{%") ||
            is_next(x, tag, "{#"))
            break;
    }
    if (tag == SIZE_MAX) {
        add_text(x, x->source.n_bytes, '+', true);
        return false;
    }
    char kind = x->source.data[tag + 1], sign = sign_at(x, tag + 2), end_sign;
    size_t inside = tag + 2 + (sign != '\0');
    add_text(x, tag, sign, kind == '{');
    if (kind == '#') {
        lex_comment(x, inside);
    } else if (kind == '%' && is_word_tag(x, inside, "raw", &end, &end_sign)) {
        lex_raw(x, end, end_sign);
    } else {
        add(x, kind == '{' ? JINJA_TOKEN_PRINT : JINJA_TOKEN_BLOCK,
            jinja_part(x->source, tag, inside));
        advance(x, inside);
        lex_tag(x, kind == '{');
    }
    return !x->r->status;
}

/* The source with \n for every end of a line, and without one at its end. */
static struct base_string normalise(struct jinja_run *r, struct base_string source)
{
    char *out = jinja_alloc(r, source.n_bytes + 1, 1);
    jinja_work(r, source.n_bytes / 4);
    size_t n = 0;
    for (size_t i = 0; out && i < source.n_bytes; i++) {
        bool is_return = source.data[i] == '\r';
        if (is_return && i + 1 < source.n_bytes && source.data[i + 1] == '\n')
            continue;
        out[n++] = source.data[i];
        if (is_return)
            out[n - 1] = '\n';
    }
    return (struct base_string){out, n - (n > 0 && out[n - 1] == '\n')};
}

const struct jinja_token *jinja_lex(struct jinja_run *r, struct base_string source)
{
    struct lexer x = {.r = r, .source = normalise(r, source)};
    r->line = 1;
    while (!r->status && lex_next(&x))
        ;
    add(&x, JINJA_TOKEN_END, (struct base_string){"", 0});
    return r->status ? NULL : x.tokens;
}
