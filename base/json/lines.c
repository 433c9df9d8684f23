#include "base/json/lines.h"

#include <string.h>

static bool only_blanks(const char *at, const char *end)
{
    while (at < end && base_json_is_blank(*at))
        at++;
    return at == end;
}

static enum status read_line(const struct base_json_line *l, base_json_line_reader *read,
                             void *user, struct status_why *why)
{
    if (base_json_has_nul(l->from, (size_t)(l->end - l->from)))
        return status_fail(why, STATUS_FORMAT, "line %zu: has the character U+0000", l->number);
    cJSON *object;
    size_t n_read;
    const char *repeated = NULL;
    enum status status =
        base_json_parse(&object, l->from, (size_t)(l->end - l->from), &n_read, why);
    if (status && status != STATUS_FORMAT)
        status_context(why, "line %zu", l->number);
    else if (!cJSON_IsObject(object) || !only_blanks(l->from + n_read, l->end))
        status = status_fail(why, STATUS_FORMAT, "line %zu: no JSON object", l->number);
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
        struct base_json_line line = {at, newline ? newline : end, number, 0};
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
    size_t line, element; /* as struct base_json_line has them */
};

static void pass_blanks(struct place *p)
{
    for (; p->at < p->end && base_json_is_blank(*p->at); p->at++)
        p->line += *p->at == '\n';
}

/** Hand over the object that begins here, and go on after it. */
static enum status read_object(struct place *p, base_json_line_reader *read, void *user,
                               struct status_why *why)
{
    const char *after = p->at < p->end && *p->at == '{' ? object_end(p->at, p->end) : NULL;
    if (!after)
        return status_fail(why, STATUS_FORMAT, "line %zu: no JSON object", p->line);
    const struct base_json_line object = {p->at, p->at + (after - p->at), p->line, p->element};
    for (; p->at < after; p->at++)
        p->line += *p->at == '\n';
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
    struct place p = {bytes + (after_mark(bytes, bytes + n_bytes) - bytes), bytes + n_bytes, 1, 0};
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
