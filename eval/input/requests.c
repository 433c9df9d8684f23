#include "eval/input/requests.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json/lines.h"
#include "base/text/utf8.h"

const char *const eval_request_result_members[] = {"logprob", "tokens", "is_greedy", "truncated",
                                                   NULL};

/** What a request asks with. */
enum part { CONTEXT, CONTINUATION, TEXT, N_PARTS };
static const char *const part_names[N_PARTS] = {"context", "continuation", "text"};

/** The end of a member's text: the comma or brace after it. */
static char *member_end(char *at, char *end)
{
    size_t depth = 0;
    bool in_string = false;
    for (; at < end; at++) {
        if (in_string) {
            if (*at == '\\')
                at++;
            else if (*at == '"')
                in_string = false;
        } else if (*at == '"') {
            in_string = true;
        } else if (*at == '{' || *at == '[') {
            depth++;
        } else if (depth == 0 && (*at == ',' || *at == '}')) {
            return at;
        } else if (*at == '}' || *at == ']') {
            depth--;
        }
    }
    return at < end ? at : end;
}

static bool is_result(const char *name)
{
    for (const char *const *member = eval_request_result_members; *member; member++)
        if (strcmp(name, *member) == 0)
            return true;
    return false;
}

static enum part part_of(const char *name)
{
    enum part part = CONTEXT;
    while (part < N_PARTS && strcmp(name, part_names[part]) != 0)
        part++;
    return part;
}

/**
 * Move the text of the members that are copied to the line's beginning, and note the others.
 * The object has the same members in the same order as the line, which it was parsed from.
 */
static void sort_members(const struct base_json_line *l, const cJSON *object,
                         const cJSON *parts[N_PARTS], size_t *n_handed)
{
    char *at = memchr(l->from, '{', (size_t)(l->end - l->from)), *to = l->from;
    for (const cJSON *member = object->child; member && at; member = member->next) {
        char *from = at + 1;
        char *end = at = member_end(from, l->end);
        while (from < end && base_json_is_blank(*from))
            from++;
        while (end > from && base_json_is_blank(end[-1]))
            end--;
        enum part part = part_of(member->string);
        if (part < N_PARTS) {
            parts[part] = member;
        } else if (!is_result(member->string)) {
            if (to > l->from)
                *to++ = ',';
            memmove(to, from, (size_t)(end - from));
            to += end - from;
        }
    }
    *n_handed = (size_t)(to - l->from);
}

/** Put a member's text where the line was, at *to. */
static enum status keep_string(const cJSON *member, char **to, const struct base_json_line *l,
                               struct base_string *s, struct status_why *why)
{
    const char *text = cJSON_GetStringValue(member);
    size_t n = text ? strlen(text) : 0;
    if (!text || n > (size_t)(l->end - *to))
        return status_fail(why, STATUS_FORMAT, "line %zu: expected \"%s\" to be a string",
                           l->number, member->string);
    if (n)
        memcpy(*to, text, n);
    *s = (struct base_string){*to, n};
    *to += n;
    return STATUS_OK;
}

static enum status fill_request(struct eval_request *r, const struct base_json_line *l,
                                const cJSON *object, struct status_why *why)
{
    const cJSON *parts[N_PARTS] = {NULL};
    size_t n_handed = 0;
    *r = (struct eval_request){.line = l->number};
    sort_members(l, object, parts, &n_handed);
    bool is_pair = parts[CONTEXT] && parts[CONTINUATION];
    r->rolling = parts[TEXT] && !parts[CONTEXT] && !parts[CONTINUATION];
    if (!r->rolling && (!is_pair || parts[TEXT]))
        return status_fail(why, STATUS_FORMAT,
                           "line %zu: expected \"context\" and \"continuation\", or \"text\" alone",
                           l->number);
    char *to = l->from + n_handed;
    r->handed = (struct base_string){l->from, n_handed};
    enum status status = keep_string(parts[is_pair ? CONTINUATION : TEXT], &to, l, &r->text, why);
    if (!status && is_pair)
        status = keep_string(parts[CONTEXT], &to, l, &r->context, why);
    return status;
}

static enum status read_request(void *user, const struct base_json_line *line, const cJSON *object,
                                struct status_why *why)
{
    struct eval_requests *out = user;
    if (base_array_reserve(out->items, out->capacity, out->n + 1, "requests", why))
        return STATUS_MEMORY;
    enum status status = fill_request(&out->items[out->n], line, object, why);
    out->n += !status;
    return status;
}

enum status eval_requests_read(struct eval_requests *out, char *bytes, size_t n_bytes,
                               struct status_why *why)
{
    *out = (struct eval_requests){0};
    enum status status = base_json_lines_read(bytes, n_bytes, read_request, out, why);
    if (!status && out->n == 0)
        status =
            status_fail(why, STATUS_FORMAT, "no requests: expected a JSON object on each line");
    if (status)
        eval_requests_free(out);
    return status;
}

void eval_requests_free(struct eval_requests *requests)
{
    free(requests->items);
    *requests = (struct eval_requests){0};
}

size_t eval_trailing_blanks(struct base_string s)
{
    size_t left = s.n_bytes, n;
    uint32_t last;
    while (left && (n = base_utf8_decode_last(s.data, left, &last)) > 0 && base_is_space(last))
        left -= n;
    return s.n_bytes - left;
}
