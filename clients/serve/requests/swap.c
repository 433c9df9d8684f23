/* POST /v1/swap: tensors of other files in the resident model, and back again. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "clients/serve/serve.h"

struct cli_swap_request {
    cJSON *body; /* a copy, which the names point into */
    struct cli_swap_wanted *wanted;
    size_t n;
    bool restore; /* first all that are there */
};

static void free_request(void *input)
{
    struct cli_swap_request *s = input;
    cJSON_Delete(s->body);
    free(s->wanted);
    free(s);
}

static enum status take(struct cli_swap_request *s, const cJSON *object, struct status_why *why)
{
    struct cli_swap_wanted *wanted = &s->wanted[s->n];
    enum status status = serve_body_text(&wanted->tensor, object, "tensor", why);
    if (!status)
        status = serve_body_text(&wanted->file, object, "file", why);
    if (!status && !wanted->tensor)
        status = status_fail(why, STATUS_USAGE, "tensor: missing, the name of one");
    if (!status && !cJSON_HasObjectItem(object, "file"))
        status = status_fail(why, STATUS_USAGE,
                             "file: missing, the path of a GGUF file, or null for the model's own");
    s->n += !status;
    return status;
}

static enum status read_body(struct cli_swap_request *s, struct status_why *why)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(s->body, "swaps"), *one;
    bool several = list || cJSON_HasObjectItem(s->body, "restore");
    enum status status = serve_body_only(
        s->body, several ? "swaps restore wait stream" : "tensor file wait stream", why);
    if (!status && list && !cJSON_IsArray(list))
        status = status_fail(why, STATUS_USAGE, "swaps: expected a list of objects");
    if (!status)
        status = serve_body_flag(&s->restore, s->body, "restore", why);
    if (status)
        return status;
    if (base_array_new(s->wanted, (size_t)cJSON_GetArraySize(list) + 1, "swaps", why))
        return STATUS_MEMORY;
    if (!several)
        return take(s, s->body, why);
    cJSON_ArrayForEach(one, list)
    {
        if (!cJSON_IsObject(one))
            status = status_fail(why, STATUS_USAGE, "swaps: expected a list of objects");
        if (!status)
            status = serve_body_only(one, "tensor file", why);
        if (!status)
            status = take(s, one, why);
        if (status)
            break;
    }
    return status;
}

static enum status fill(void *input, const struct serve *serve, const cJSON *body,
                        struct status_why *why)
{
    struct cli_swap_request *s = input;
    s->body = cJSON_Duplicate(body, true);
    enum status status =
        s->body ? read_body(s, why) : status_fail(why, STATUS_MEMORY, "no memory for the swaps");
    if (!status && serve->hot)
        status = status_fail(why, STATUS_CHANGED,
                             "with hot-swap, tensors come from the model's own files: replace "
                             "those, then GET /health");
    return status;
}

/** As one step: what is there goes back, then what is wanted comes. */
static enum status apply(struct serve *serve, const struct cli_swap_request *s,
                         const atomic_bool *cancel, struct status_why *why)
{
    struct cli_swaps *swaps = &serve->swaps;
    size_t n_back = s->restore ? swaps->n : 0, n = n_back;
    struct cli_swap_wanted *all;
    enum status status = base_array_new(all, n_back + s->n, "swaps", why);
    if (status)
        return status;
    for (size_t i = 0; i < n_back; i++)
        all[i].tensor = swaps->items[i].own->name;
    for (size_t i = 0; i < s->n && !status; i++) {
        char *file = NULL;
        if (atomic_load(cancel))
            status = status_fail(why, STATUS_CANCELLED, "cancelled");
        else if (s->wanted[i].file)
            status = serve_find_file(&file, &serve->folders, s->wanted[i].file, why);
        if (status)
            status_context(why, "%s", s->wanted[i].tensor);
        all[n++] = (struct cli_swap_wanted){s->wanted[i].tensor, file};
    }
    if (!status)
        status = cli_swaps_apply(swaps, all, n, cancel, why);
    for (size_t i = n_back; i < n; i++)
        free((char *)(uintptr_t)all[i].file);
    free(all);
    return status;
}

static enum status run(void *server, struct serve_job *job, struct status_why *why)
{
    struct serve *serve = server;
    enum status status = apply(serve, job->input, &job->cancel, why);
    if (status)
        return status;
    atomic_fetch_add(&serve->n_swaps, 1);
    serve_show_models(serve);
    struct base_json json;
    base_json_begin(&json);
    base_json_text(&json, json.root, "id", serve->resident.models[0].id);
    cli_swaps_add_json(&json, json.root, &serve->swaps);
    status = base_json_text_of(&json, &job->result, why);
    base_json_free(&json);
    return status;
}

static size_t n_bytes(const void *input)
{
    enum { OF_SWAP = 1024 };
    return ((const struct cli_swap_request *)input)->n * OF_SWAP;
}

const struct serve_post serve_swapping = {{"swap", run, free_request, .changes = true},
                                          sizeof(struct cli_swap_request),
                                          fill,
                                          .waits = true,
                                          .n_bytes = n_bytes};
