/* POST /v1/swap: tensors of other files in the resident model, and back again. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "clients/serve/serve.h"

struct serve_swap_request {
    cJSON *body; /* a copy, which the names point into */
    struct cli_swap_wanted *wanted;
    size_t n;
    bool several; /* a list of them, not one */
    bool restore; /* first all that are there */
};

static void free_request(void *input)
{
    struct serve_swap_request *s = input;
    cJSON_Delete(s->body);
    free(s->wanted);
    free(s);
}

static void take(struct serve_swap_request *s, struct base_field object)
{
    struct cli_swap_wanted *wanted = &s->wanted[s->n++];
    wanted->tensor = base_field_text(object, "tensor");
    wanted->file = base_field_text_or(object, "file", NULL);
    if (!base_field_get(object, "file").json)
        base_field_fail_member(
            object, "file", STATUS_USAGE,
            "is missing, expected the path of a GGUF file, or null for the model's own");
}

static void read_body(struct serve_swap_request *s, struct base_field body)
{
    struct base_field list = base_field_get(body, "swaps"), one = {0};
    struct status_why why;
    s->several = list.json || base_field_get(body, "restore").json;
    serve_body_only(body, s->several ? "swaps restore wait stream" : "tensor file wait stream");
    if (list.json && !cJSON_IsArray(list.json))
        base_field_fail(body, STATUS_USAGE, "swaps: expected a list of objects");
    s->restore = base_field_flag_or(body, "restore", false);
    if (body.reader->status ||
        base_json_keep(body.reader,
                       base_array_new(s->wanted, base_field_count(list) + 1, "swaps", &why), &why))
        return;
    if (!s->several)
        take(s, body);
    while (base_field_next(list, &one)) {
        if (!cJSON_IsObject(one.json))
            base_field_refuse(one, "", "an object");
        serve_body_only(one, "tensor file");
        take(s, one);
    }
}

static void fill(void *input, const struct serve *serve, struct base_field body)
{
    struct serve_swap_request *s = input;
    s->body = cJSON_Duplicate(body.json, true);
    struct base_json_reader copy = serve_body_reader(s->body);
    if (s->body) {
        read_body(s, base_json_root(&copy));
        base_json_keep(body.reader, copy.status, &copy.why);
    } else
        base_field_fail(body, STATUS_MEMORY, "no memory for the swaps");
    if (serve->hot)
        base_field_fail(body, STATUS_CHANGED,
                        "with hot-swap, tensors come from the model's own files: replace those, "
                        "then GET /health");
}

/** As one step: what is there goes back, then what is wanted comes. */
static enum status apply(struct serve *serve, const struct serve_swap_request *s,
                         const atomic_bool *cancel, struct status_why *why)
{
    struct cli_swaps *swaps = &serve->swaps;
    size_t n_back = s->restore ? swaps->n : 0, n = n_back, wrong = n_back;
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
        wrong = n;
        all[n++] = (struct cli_swap_wanted){s->wanted[i].tensor, file};
    }
    if (!status)
        status = cli_swaps_apply(swaps, all, n, &wrong, cancel, why);
    if (status && s->several && wrong >= n_back && wrong < n)
        status_context(why, "swaps[%zu]", wrong - n_back);
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
    return ((const struct serve_swap_request *)input)->n * OF_SWAP;
}

const struct serve_post serve_swapping = {{"swap", run, free_request, .changes = true},
                                          sizeof(struct serve_swap_request),
                                          fill,
                                          .waits = true,
                                          .n_bytes = n_bytes};
