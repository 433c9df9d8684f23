/* What the other threads see of model and base. */
#include "cli/output/json_parts.h"
#include "cli/reference/base.h"
#include "clients/serve/serve.h"

/** The first member of the document in place of *text, which other threads read. */
static void show(struct serve *serve, char **text, struct base_json *json)
{
    char *now = json->failed ? NULL : cJSON_PrintUnformatted(json->root->child);
    base_json_free(json);
    pthread_mutex_lock(&serve->lock);
    cJSON_free(*text);
    *text = now;
    pthread_mutex_unlock(&serve->lock);
}

void serve_show_base(struct serve *serve, const struct cli_base *base)
{
    struct base_json json;
    base_json_begin(&json);
    cli_base_add_json(&json, json.root, base, true);
    show(serve, &serve->base_text, &json);
}

void serve_show_models(struct serve *serve)
{
    const struct serve_resident *resident = &serve->resident;
    struct base_json json;
    base_json_begin(&json);
    cli_json_add_model(&json, json.root, "model", &resident->models[0], true);
    show(serve, &serve->model_text, &json);
    if (resident->n_models > 1)
        serve_show_base(serve, &(struct cli_base){.kind = &cli_base_model,
                                                  .path = serve->settings->base,
                                                  .model = resident->models[1]});
}
