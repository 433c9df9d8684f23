#include "probe/api/about.h"

#include <stdio.h>
#include <string.h>

static void take_context(struct probe_about *about, const cJSON *object, const char *key)
{
    const cJSON *n = cJSON_GetObjectItemCaseSensitive(object, key);
    if (cJSON_IsNumber(n) && n->valuedouble >= 1 && n->valuedouble < 0x1p31)
        about->n_ctx = (int64_t)n->valuedouble;
}

void probe_about_models(struct probe_about *about, const cJSON *page)
{
    const cJSON *data = cJSON_GetObjectItemCaseSensitive(page, "data");
    const cJSON *first = cJSON_IsArray(data) ? data->child : NULL;
    const cJSON *owner = cJSON_GetObjectItemCaseSensitive(first, "owned_by");
    const cJSON *id = cJSON_GetObjectItemCaseSensitive(first, "id");
    take_context(about, first, "max_model_len");
    if (cJSON_IsString(id) && strlen(id->valuestring) < sizeof about->model)
        snprintf(about->model, sizeof about->model, "%s", id->valuestring);
    for (size_t i = 0; cJSON_IsString(owner) && i < PROBE_N_APIS && !about->api; i++)
        if (probe_apis[i].owner && strcmp(owner->valuestring, probe_apis[i].owner) == 0)
            about->api = &probe_apis[i];
}

void probe_about_props(struct probe_about *about, const cJSON *page)
{
    const cJSON *defaults = cJSON_GetObjectItemCaseSensitive(page, "default_generation_settings");
    take_context(about, defaults, "n_ctx");
    if (cJSON_GetObjectItemCaseSensitive(defaults, "tfs_z")) /* llama-server has lost it */
        about->api = &probe_apis[PROBE_API_IK];
}
