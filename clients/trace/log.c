/*
 * The log of llama-eval-callback. Each tensor has a line
 *     PROGRAM: NAME = (TYPE) OP(SOURCE{shape}, SOURCE{shape}) = {ne0, ne1, ne2, ne3}
 * then its values in brackets, the first and last three of each axis but the last, and
 *     sum = S
 * Types that are quantised have no values. What is between tensors is skipped, but for the tokens:
 * a line "number of input tokens = N" and N lines that end with an id.
 */
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "base/text/quote.h"
#include "base/text/words.h"
#include "clients/trace/file.h"

enum { MOST_TOKENS = 1 << 24 };

struct reader {
    struct trace_file *file;
    const char *at, *end; /* what follows the line */
    struct base_string line;
    size_t number;
    struct status_why *why;
};

static bool next_line(struct reader *r)
{
    if (r->at == r->end)
        return false;
    size_t left = (size_t)(r->end - r->at);
    const char *newline = memchr(r->at, '\n', left);
    r->line = (struct base_string){r->at, newline ? (size_t)(newline - r->at) : left};
    r->at = newline ? newline + 1 : r->end;
    r->number++;
    return true;
}

static struct base_string trimmed(struct base_string s)
{
    while (s.n_bytes && strchr(" \t\r", s.data[0])) {
        s.data++;
        s.n_bytes--;
    }
    while (s.n_bytes && strchr(" \t\r", s.data[s.n_bytes - 1]))
        s.n_bytes--;
    return s;
}

static bool is(struct base_string s, const char *text)
{
    return s.n_bytes == strlen(text) && memcmp(s.data, text, s.n_bytes) == 0;
}

/** Where `text` is in s; NULL: nowhere. */
static const char *find(struct base_string s, const char *text)
{
    return s.n_bytes ? memmem(s.data, s.n_bytes, text, strlen(text)) : NULL;
}

static struct base_string between(const char *from, const char *to)
{
    return (struct base_string){from, (size_t)(to - from)};
}

static enum status bad(const struct reader *r, const char *expected)
{
    struct base_quoted quoted;
    return status_fail(r->why, STATUS_FORMAT,
                       "line %zu: found %s, expected %s: the log is damaged, or two programs wrote "
                       "into it; record it again, without what goes to standard error",
                       r->number, base_quote(&quoted, trimmed(r->line)), expected);
}

static enum status cut(const struct reader *r)
{
    return status_fail(r->why, STATUS_FORMAT,
                       "the log ends within the values of tensor '%s' (line %zu): it is cut off; "
                       "record it again",
                       r->file->records[r->file->n - 1].name, r->number);
}

/** Within a tensor: the next line without blanks around it. */
static enum status next_in_tensor(struct reader *r, struct base_string *line)
{
    if (!next_line(r))
        return cut(r);
    *line = trimmed(r->line);
    return STATUS_OK;
}

static enum status expect(struct reader *r, const char *text)
{
    struct base_string line = {"", 0};
    enum status status = next_in_tensor(r, &line);
    if (status || is(line, text))
        return status;
    /* A last line without its end is a cut. */
    return r->at == r->end ? cut(r) : bad(r, text);
}

/** A number that all of s is. */
static bool number_of(struct base_string s, double *out)
{
    char text[48], *end;
    s = trimmed(s);
    if (s.n_bytes == 0 || s.n_bytes >= sizeof text)
        return false;
    memcpy(text, s.data, s.n_bytes);
    text[s.n_bytes] = '\0';
    *out = strtod(text, &end);
    return *end == '\0';
}

static enum status push(struct reader *r, double value)
{
    struct trace_file *f = r->file;
    if (base_array_reserve(f->numbers, f->numbers_capacity, f->n_numbers + 1, "numbers", r->why))
        return STATUS_MEMORY;
    f->numbers[f->n_numbers++] = value;
    return STATUS_OK;
}

static uint64_t shown_of(uint64_t n)
{
    return n > 2 * TRACE_PRINTED_ENDS ? 2 * TRACE_PRINTED_ENDS : n;
}

/** "[ 1.0, 2.0, ..., 3.0 ]," with as many numbers as an axis of n shows. */
static enum status read_row(struct reader *r, uint64_t n)
{
    struct base_string line = {"", 0};
    enum status status = next_in_tensor(r, &line);
    if (status)
        return status;
    if (line.n_bytes < 3 || line.data[0] != '[' || line.data[line.n_bytes - 1] != ',' ||
        line.data[line.n_bytes - 2] != ']')
        return r->at == r->end ? cut(r) : bad(r, "a row of numbers in brackets");
    const char *at = line.data + 1, *end = line.data + line.n_bytes - 2;
    for (uint64_t i = 0; i < shown_of(n) + (n > shown_of(n)); i++) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        struct base_string word = trimmed(between(at, comma ? comma : end));
        at = comma ? comma + 1 : end;
        double value;
        if (n > shown_of(n) && i == TRACE_PRINTED_ENDS) {
            if (!is(word, "..."))
                return bad(r, "... between the first and the last numbers");
            continue;
        }
        if (!number_of(word, &value))
            return bad(r, "a number");
        status = push(r, value);
        if (status)
            return status;
    }
    return at == end || n == 0 ? STATUS_OK : bad(r, "no more numbers");
}

static enum status read_matrix(struct reader *r, const uint64_t *ne)
{
    enum status status = expect(r, "[");
    for (uint64_t i = 0; !status && i < shown_of(ne[1]); i++) {
        if (i == TRACE_PRINTED_ENDS && ne[1] > shown_of(ne[1]))
            status = expect(r, "...,");
        if (!status)
            status = read_row(r, ne[0]);
    }
    return status ? status : expect(r, "],");
}

/** The values of a record, and their sum. Every round of a loop reads a line. */
static enum status read_values(struct reader *r, struct trace_record *record)
{
    enum status status = STATUS_OK;
    record->at = r->file->n_numbers;
    for (uint64_t i3 = 0; !status && i3 < record->ne[3]; i3++) {
        status = expect(r, "[");
        for (uint64_t i = 0; !status && i < shown_of(record->ne[2]); i++) {
            if (i == TRACE_PRINTED_ENDS && record->ne[2] > shown_of(record->ne[2]))
                status = expect(r, "...,");
            if (!status)
                status = read_matrix(r, record->ne);
        }
        if (!status)
            status = expect(r, "]");
        struct base_string line = {"", 0};
        if (!status)
            status = next_in_tensor(r, &line);
        if (!status && (line.n_bytes < 6 || memcmp(line.data, "sum = ", 6) != 0 ||
                        !number_of(between(line.data + 6, line.data + line.n_bytes), &record->sum)))
            status = bad(r, "sum = and a number");
    }
    record->has_sum = record->ne[3] > 0;
    record->n_values = r->file->n_numbers - record->at;
    return status;
}

/** "{a, b, c, d}" at the end of a line; *from: where it begins. */
static bool read_shape(struct base_string line, uint64_t ne[4], const char **from)
{
    enum { MOST_DIGITS = 15 };
    if (line.n_bytes == 0 || line.data[line.n_bytes - 1] != '}')
        return false;
    const char *at = line.data + line.n_bytes - 1, *end = at;
    while (at > line.data && *at != '{')
        at--;
    if (*at != '{')
        return false;
    *from = at++;
    for (int d = 0; d < 4; d++) {
        while (at < end && *at == ' ')
            at++;
        const char *first = at;
        for (ne[d] = 0; at < end && *at >= '0' && *at <= '9' && at - first < MOST_DIGITS; at++)
            ne[d] = 10 * ne[d] + (uint64_t)(*at - '0');
        if (at == first || (d < 3 ? at >= end || *at++ != ',' : at != end))
            return false;
    }
    uint64_t n = 1;
    for (int d = 0; d < 4; d++)
        if (__builtin_mul_overflow(n, ne[d], &n) || n > (uint64_t)1 << 48)
            return false;
    return true;
}

/** The weight that a node without a name is made of. */
static struct base_string weight_of(struct base_string sources)
{
    const char *at = sources.data, *end = at + sources.n_bytes;
    while (at && at < end) {
        if (end - at > 4 && memcmp(at, "blk.", 4) == 0) {
            const char *brace = memchr(at, '{', (size_t)(end - at));
            return between(at, brace ? brace : end);
        }
        at = memchr(at, ' ', (size_t)(end - at));
        at = at ? at + 1 : NULL;
    }
    return (struct base_string){"", 0};
}

/** A tensor's first line, or none: then *found is false. */
static enum status read_head(struct reader *r, struct trace_record **record, bool *found,
                             bool *has_values)
{
    static const char types[] = "f32 f16 bf16 i8 i16 i32 i64";
    uint64_t ne[4];
    const char *shape, *equals = find(r->line, " = ("), *colon = find(r->line, ": ");
    struct base_string line = trimmed(r->line);
    *found =
        equals && colon && colon + 2 <= equals && read_shape(line, ne, &shape) && shape > equals;
    if (!*found)
        return STATUS_OK;
    struct base_string rest = between(equals + 4, shape),
                       name = trimmed(between(colon + 2, equals));
    const char *type_end = find(rest, ")");
    if (!type_end)
        return bad(r, "a type in parentheses");
    char type[8] = "";
    memcpy(type, rest.data, base_min((size_t)(type_end - rest.data), sizeof type - 1));
    *has_values = base_words_index(types, type) >= 0;
    rest = between(type_end + 1, shape);
    const char *open = find(rest, "(");
    if (!open)
        return bad(r, "an operation with its sources in parentheses");
    struct base_string op = trimmed(between(rest.data, open));
    if (name.n_bytes > 5 && memcmp(name.data, "node_", 5) == 0) {
        struct base_string weight = weight_of(between(open + 1, shape));
        name = weight.n_bytes ? weight : name;
    }
    enum status status = trace_file_add(r->file, name, op, record, r->why);
    if (!status)
        memcpy((*record)->ne, ne, sizeof ne);
    return status;
}

/** The tokens, if the line announces them. */
static enum status read_tokens(struct reader *r)
{
    static const char announced[] = "number of input tokens = ";
    const char *at = find(r->line, announced);
    double n;
    if (!at || !number_of(between(at + strlen(announced), r->line.data + r->line.n_bytes), &n) ||
        !(n >= 1 && n <= MOST_TOKENS))
        return STATUS_OK;
    struct trace_file *f = r->file;
    if (f->n_tokens)
        return status_fail(r->why, STATUS_FORMAT,
                           "line %zu: the log has a second list of tokens: two runs wrote into it; "
                           "record it again",
                           r->number);
    for (size_t i = 0; i < (size_t)n; i++) {
        double id;
        if (!next_line(r))
            return status_fail(r->why, STATUS_FORMAT,
                               "the log ends after %zu of %.0f tokens: it is cut off; record it "
                               "again",
                               i, n);
        struct base_string line = trimmed(r->line);
        const char *word = line.data + line.n_bytes;
        while (word > line.data && word[-1] != ' ')
            word--;
        if (!number_of(between(word, line.data + line.n_bytes), &id) ||
            !(id >= 0 && id <= INT32_MAX) || id != (double)(int32_t)id)
            return bad(r, "the id of a token");
        if (base_array_reserve(f->tokens, f->tokens_capacity, f->n_tokens + 1, "tokens", r->why))
            return STATUS_MEMORY;
        f->tokens[f->n_tokens++] = (int32_t)id;
    }
    return STATUS_OK;
}

enum status trace_file_log(struct trace_file *file, struct status_why *why)
{
    struct reader r = {.file = file,
                       .at = file->text.data,
                       .end = file->text.data + file->text.n_bytes,
                       .why = why};
    enum status status = STATUS_OK;
    while (!status && next_line(&r)) {
        struct trace_record *record;
        bool found, has_values = false;
        status = read_head(&r, &record, &found, &has_values);
        if (!status && found && has_values)
            status = read_values(&r, record);
        else if (!status && !found)
            status = read_tokens(&r);
    }
    if (!status && file->n == 0)
        status = status_fail(why, STATUS_FORMAT,
                             "there is no tensor in it; expected the log of llama-eval-callback, "
                             "an .npz or an .npy");
    return status;
}
