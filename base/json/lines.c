#include "base/json/lines.h"

#include <string.h>

#include "base/arithmetic.h"
#include "base/text/escape.h"

static bool only_blanks(const char *at, const char *end)
{
    while (at < end && base_json_is_blank(*at))
        at++;
    return at == end;
}

/* What JSON has after the first *n bytes of an object; NULL: they end within a text, or are too
 * deep. Where the parser went on over the first byte of what should be a name, *n is one less. */
static const char *expected_after(const char *text, size_t *n_right)
{
    size_t n = *n_right;
    enum { DEEPEST = 64 };
    char open[DEEPEST] = "", before = 0, last = 0;
    size_t depth = 0;
    bool name = false;
    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        if (base_json_is_blank(c))
            continue;
        before = last;
        if (c == '"') {
            while (++i < n && text[i] != '"')
                i += text[i] == '\\';
            if (i >= n)
                return NULL;
            name =
                depth && depth <= DEEPEST && open[depth - 1] == '{' && (last == '{' || last == ',');
        } else if (c == '{' || c == '[') {
            if (depth++ < DEEPEST)
                open[depth - 1] = c;
        } else if (c == '}' || c == ']') {
            depth -= depth > 0;
        }
        last = c;
    }
    if (!depth || depth > DEEPEST)
        return NULL;
    bool in_object = open[depth - 1] == '{';
    if (in_object && (before == '{' || before == ',') && !strchr("\"{}[],:", last)) {
        *n_right -= 1;
        last = before;
    }
    return last == '{'           ? "a name in quotation marks, or }"
           : last == '['         ? "a value, or ]"
           : last == ','         ? in_object ? "a name in quotation marks" : "a value"
           : last == ':'         ? "a value"
           : last == '"' && name ? ":"
           : in_object           ? ", or }"
                                 : ", or ]";
}

/* Where a text stops being an object. n: the bytes of the object that it begins with; without one,
 * those before the place where the parser gave up, which is never after the last one. */
static enum status fail_no_object(const struct base_json_line *l, size_t n, bool parsed,
                                  struct status_why *why)
{
    enum { SHOWN = 20 };
    char shown[4 * SHOWN + 1];
    size_t line = l->number, column = l->column, size = (size_t)(l->end - l->from), i = 0;
    bool is_object = size && *l->from == '{';
    const char *expected = is_object ? NULL : "{";
    if (!size)
        return status_fail(why, STATUS_FORMAT,
                           "line %zu: no JSON object: the text ends at column %zu", line, column);
    if (is_object && !parsed)
        expected = expected_after(l->from, &n);
    for (; i < size && is_object && (i < n || base_json_is_blank(l->from[i])); i++) {
        column = l->from[i] == '\n' ? 1 : column + 1;
        line += l->from[i] == '\n';
    }
    /* The last byte may be right, and something missing after it. */
    bool wrong =
        i < size && expected && strchr("}],:", l->from[i]) && !strchr(expected, l->from[i]);
    if (is_object && !parsed && size - i <= 1 && !wrong)
        return status_fail(why, STATUS_FORMAT,
                           "line %zu: no JSON object: it is not whole at its end, column %zu", line,
                           column - (i == size));
    size_t n_shown = 0;
    while (n_shown < size - i && l->from[i + n_shown] != '\n')
        n_shown++;
    base_printable(shown, sizeof shown, l->from + i, base_min(n_shown, SHOWN));
    return status_fail(why, STATUS_FORMAT, "line %zu: no JSON object: found %s%s at column %zu%s%s",
                       line, shown, n_shown > SHOWN ? "..." : "", column,
                       expected ? ", expected " : "", expected ? expected : "");
}

static enum status read_line(const struct base_json_line *l, base_json_line_reader *read,
                             void *user, struct status_why *why)
{
    if (base_json_find_nul(l->from, (size_t)(l->end - l->from)))
        return status_fail(why, STATUS_FORMAT, "line %zu: has the character U+0000", l->number);
    cJSON *object = NULL;
    size_t n_read = 0;
    const char *repeated = NULL;
    enum status status =
        base_json_parse(&object, l->from, (size_t)(l->end - l->from), &n_read, why);
    if (status && status != STATUS_FORMAT)
        status_context(why, "line %zu", l->number);
    else if (!cJSON_IsObject(object) || !only_blanks(l->from + n_read, l->end))
        status = fail_no_object(l, n_read, object != NULL, why);
    else
        status = base_json_find_repeated(&repeated, object, why);
    if (repeated)
        status = status_fail(why, STATUS_FORMAT, "line %zu: has \"%.80s\" twice; expected it once",
                             l->number, repeated);
    if (!status)
        status = read(user, l, object, why);
    cJSON_Delete(object);
    return status;
}

enum status base_json_lines_read(char *bytes, size_t n_bytes, base_json_line_reader *read,
                                 void *user, struct status_why *why)
{
    enum status status = STATUS_OK;
    char *end = bytes + n_bytes, *next;
    size_t number = 1;
    for (char *at = bytes; at < end && !status; at = next, number++) {
        char *newline = memchr(at, '\n', (size_t)(end - at));
        struct base_json_line line = {at, newline ? newline : end, number, 1, 0};
        next = newline ? newline + 1 : end;
        if (!only_blanks(line.from, line.end))
            status = read_line(&line, read, user, why);
    }
    return status;
}

/** Where an object that begins at `at` ends: after its last bracket. NULL: it does not. */
static const char *object_end(const char *at, const char *end)
{
    size_t depth = 0;
    bool in_string = false;
    for (; at < end; at++) {
        if (in_string && *at == '\n')
            return NULL;
        if (in_string && *at == '\\')
            at++;
        else if (*at == '"')
            in_string = !in_string;
        else if (!in_string && (*at == '{' || *at == '['))
            depth++;
        else if (!in_string && (*at == '}' || *at == ']') && --depth == 0)
            return at + 1;
    }
    return NULL;
}

static const char *after_mark(const char *at, const char *end)
{
    return end - at >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0 ? at + 3 : at;
}

enum status base_json_first_object(cJSON **out, const char *bytes, size_t n_bytes,
                                   struct status_why *why)
{
    const char *at = after_mark(bytes, bytes + n_bytes), *end = bytes + n_bytes;
    *out = NULL;
    for (int i = 0; i < 2; i++) { /* the bracket of a list may come first */
        while (at < end && base_json_is_blank(*at))
            at++;
        at += i == 0 && at < end && *at == '[';
    }
    const char *after = at < end && *at == '{' ? object_end(at, end) : NULL;
    enum status status =
        after ? base_json_parse(out, at, (size_t)(after - at), NULL, why) : STATUS_OK;
    return status == STATUS_FORMAT ? STATUS_OK : status;
}

/** Where a reader of objects is in the text. */
struct place {
    char *at, *end;
    size_t line, element;   /* as struct base_json_line has them */
    const char *line_begin; /* of this line */
};

static void pass(struct place *p)
{
    if (*p->at++ == '\n') {
        p->line++;
        p->line_begin = p->at;
    }
}

static void pass_blanks(struct place *p)
{
    while (p->at < p->end && base_json_is_blank(*p->at))
        pass(p);
}

/** Hand over the object that begins here, and go on after it. */
static enum status read_object(struct place *p, base_json_line_reader *read, void *user,
                               struct status_why *why)
{
    bool begins = p->at < p->end && *p->at == '{';
    const char *after = begins ? object_end(p->at, p->end) : NULL;
    size_t column = (size_t)(p->at - p->line_begin) + 1;
    struct base_json_line object = {p->at, p->end, p->line, column, p->element};
    if (!after) { /* the parser knows why */
        enum { ENOUGH = 1 << 16 };
        cJSON *unused = NULL;
        size_t n_read = 0, n = base_min((size_t)(p->end - p->at), ENOUGH);
        enum status status = base_json_parse(&unused, object.from, n, &n_read, why);
        cJSON_Delete(unused);
        if (status && status != STATUS_FORMAT)
            return status;
        bool cut = n < (size_t)(p->end - p->at); /* what was read may break off in a good object */
        return begins && (cut || !status)
                   ? status_fail(why, STATUS_FORMAT,
                                 "line %zu: no JSON object: it does not end, or a text "
                                 "in it has a line end",
                                 p->line)
                   : fail_no_object(&object, n_read, false, why);
    }
    object.end = p->at + (after - p->at);
    while (p->at < after)
        pass(p);
    return read_line(&object, read, user, why);
}

/** The elements of a list, up to the bracket that closes it. */
static enum status read_list(struct place *p, base_json_line_reader *read, void *user,
                             struct status_why *why)
{
    size_t first_line = p->line;
    enum status status;
    char next;
    do {
        p->at++;
        p->element++;
        pass_blanks(p);
        status = read_object(p, read, user, why);
        pass_blanks(p);
        next = p->at < p->end ? *p->at : '\0';
    } while (!status && next == ',');
    if (!status && next != ']')
        status = status_fail(why, STATUS_FORMAT,
                             "line %zu: expected , or ] after an element of the list that begins "
                             "in line %zu",
                             p->line, first_line);
    p->at += !status;
    pass_blanks(p);
    if (!status && p->at < p->end)
        status = status_fail(why, STATUS_FORMAT, "line %zu: the text goes on after its JSON list",
                             p->line);
    return status;
}

enum status base_json_objects_read(char *bytes, size_t n_bytes, base_json_line_reader *read,
                                   void *user, struct status_why *why)
{
    struct place p = {bytes + (after_mark(bytes, bytes + n_bytes) - bytes), bytes + n_bytes, 1, 0,
                      bytes};
    enum status status = STATUS_OK;
    pass_blanks(&p);
    if (p.at < p.end && *p.at == '[')
        return read_list(&p, read, user, why);
    while (p.at < p.end && !status) {
        status = read_object(&p, read, user, why);
        pass_blanks(&p);
    }
    return status;
}
