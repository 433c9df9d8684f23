#include <string.h>

#include "base/json/parse.h"
#include "base/text/quote.h"
#include "base/text/utf8.h"
#include "base/text/words.h"
#include "clients/serve/serve.h"

enum { MAX_MEMBERS = 100 }; /* of an object */

/** One of two members of one name would be lost. Recursion: the parser has a limit. */
static enum status check(const cJSON *value, struct status_why *why)
{
    struct base_quoted quoted;
    size_t n = 0;
    enum status status = STATUS_OK;
    for (const cJSON *a = value->child; a && !status; a = a->next) {
        for (const cJSON *b = value->child; cJSON_IsObject(value) && b != a && !status; b = b->next)
            if (strcmp(a->string, b->string) == 0)
                status = status_fail(
                    why, STATUS_FORMAT, "the body has the member %s twice",
                    base_quote(&quoted, (struct base_string){a->string, strlen(a->string)}));
        if (!status && cJSON_IsObject(value) && ++n > MAX_MEMBERS)
            status = status_fail(why, STATUS_FORMAT,
                                 "an object of the body has more than %d members", MAX_MEMBERS);
        if (!status)
            status = check(a, why);
    }
    return status;
}

enum status serve_body_parse(cJSON **out, const char *bytes, size_t n, struct status_why *why)
{
    *out = NULL;
    size_t bad = base_utf8_first_bad(bytes, n), n_read = 0;
    if (bad < n)
        return status_fail(why, STATUS_FORMAT, "the body is not UTF-8: see its byte %zu", bad);
    if (base_json_find_nul(bytes, n))
        return status_fail(why, STATUS_FORMAT, "the body has the character U+0000");
    enum status status = base_json_parse(out, bytes, n, &n_read, why);
    if (status == STATUS_FORMAT)
        return status_fail(why, status, "the body is not JSON: see its byte %zu", n_read);
    if (status)
        return status;
    while (n_read < n && base_json_is_blank(bytes[n_read]))
        n_read++;
    if (!cJSON_IsObject(*out))
        status = status_fail(why, STATUS_FORMAT, "the body is no JSON object");
    else if (n_read < n)
        status =
            status_fail(why, STATUS_FORMAT, "the body goes on after its object: byte %zu", n_read);
    else
        status = check(*out, why);
    if (status) {
        cJSON_Delete(*out);
        *out = NULL;
    }
    return status;
}

bool serve_body_take(size_t *n_taken, size_t n_bytes, const struct serve_http_request *request,
                     struct serve_http_reply *reply)
{
    if (serve_budget_take(request->budget, n_bytes)) {
        *n_taken += n_bytes;
        return true;
    }
    serve_reply_no_room(reply, request, request->n_body + *n_taken + n_bytes);
    return false;
}

cJSON *serve_body_read(size_t *n_taken, const struct serve_http_request *request,
                       struct serve_http_reply *reply)
{
    struct status_why why = {""};
    cJSON *body = NULL;
    const char *bytes = request->n_body ? request->body : "{}";
    size_t n = request->n_body ? request->n_body : 2;
    *n_taken = 0;
    if (!serve_body_take(n_taken, base_json_memory(bytes, n), request, reply))
        return NULL;
    enum status status = serve_body_parse(&body, bytes, n, &why);
    if (status == STATUS_FORMAT || status == STATUS_UNSUPPORTED)
        serve_reply_error(reply, 400, status_name(status), why.text);
    else if (status)
        serve_reply_failure(reply, status, &why);
    return body;
}

struct base_json_reader serve_body_reader(cJSON *body)
{
    return (struct base_json_reader){.root = body, .code = STATUS_USAGE};
}

void serve_body_only(struct base_field object, const char *members)
{
    for (struct base_field member = {0}; base_field_next(object, &member);) {
        const char *name = member.json->string;
        if (base_words_index(members, name) >= 0)
            continue;
        struct base_quoted quoted;
        char nearest[32] = "";
        size_t distance = strlen(name) / 3 + 2;
        base_nearest_name(name, members, nearest, sizeof nearest, &distance);
        base_field_fail(
            object, STATUS_USAGE, "unknown member %s; %s%s",
            base_quote(&quoted, (struct base_string){name, strlen(name)}),
            *nearest ? "did you mean " : "expected some of: ", *nearest ? nearest : members);
    }
}

size_t serve_n_lines(const char *text)
{
    size_t n = 1;
    while ((text = strchr(text, '\n')) && ++n)
        text++;
    return n;
}

void serve_body_ids(struct model_tokens *out, struct base_field list)
{
    struct status_why why;
    for (struct base_field item = {0}; !list.reader->status && base_field_next(list, &item);) {
        uint64_t id = base_field_uint(item, "", INT32_MAX);
        base_json_keep(list.reader, model_tokens_add(out, (int32_t)id, &why), &why);
    }
}
