/* Hot-swap: files of the resident models that others replaced. GET /health has them read again. */
#include <stdlib.h>

#include "base/text/printable.h"
#include "cli/session/shards.h"
#include "clients/serve/serve.h"

/** What the model's tensors are, to tell afterwards which are others. NULL: no memory. */
static const void **data_of(const struct model *model)
{
    size_t n = gguf_n_tensors(model_file(model));
    const void **data = calloc(n + 1, sizeof *data);
    for (size_t i = 0; data && i < n; i++)
        data[i] = model_in_force(model, i).data;
    return data;
}

static void add_changed(struct base_json *json, cJSON *list, const struct cli_model *model,
                        const void **before)
{
    const struct gguf_file *file = model_file(model->model);
    for (size_t i = 0; i < gguf_n_tensors(file); i++) {
        struct model_in_force now = model_in_force(model->model, i);
        if (now.data == before[i])
            continue;
        cJSON *o = base_json_object(json, list, NULL);
        base_json_text(json, o, "model", base_file_name(model->path));
        base_json_text(json, o, "name", gguf_tensor_at(file, i)->name);
        base_json_text(json, o, "type", now.type->name);
        base_json_uint(json, o, "n_bytes", now.n_bytes);
    }
}

static enum status run(void *server, struct serve_job *job, struct status_why *why)
{
    struct serve *serve = server;
    struct serve_resident *resident = &serve->resident;
    struct base_json json;
    base_json_begin(&json);
    cJSON *list = base_json_list(&json, json.root, "reloaded");
    for (size_t i = 0; i < resident->n_models; i++) {
        const void **before = data_of(resident->models[i].model);
        json.failed = json.failed || !before;
        (void)cli_shards_reload(resident->models[i].shards, &resident->backends, "");
        if (before)
            add_changed(&json, list, &resident->models[i], before);
        free(before);
    }
    serve_show_models(serve);
    enum status status = base_json_text_of(&json, &job->result, why);
    base_json_free(&json);
    return status;
}

static void no_input(void *input)
{
    (void)input;
}

const struct serve_job_kind serve_reloading = {"reload", run, no_input, .changes = true};
