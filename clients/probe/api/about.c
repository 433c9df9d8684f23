#include "clients/probe/api/about.h"
#include "base/json/read.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void probe_said_free(struct probe_said *said)
{
    free(said->chat_template);
    said->chat_template = NULL;
}

/** A text that fits, or nothing of it. */
static void take_text(char *out, size_t capacity, const cJSON *object, const char *key)
{
    const cJSON *text = base_json_member(object, key);
    if (cJSON_IsString(text) && strlen(text->valuestring) < capacity)
        snprintf(out, capacity, "%s", text->valuestring);
}

static void take_size(int64_t *out, const cJSON *object, const char *key)
{
    const cJSON *n = base_json_member(object, key);
    if (cJSON_IsNumber(n) && n->valuedouble >= 1 && n->valuedouble < 0x1p53 &&
        n->valuedouble == floor(n->valuedouble))
        *out = (int64_t)n->valuedouble;
}

static void take_context(struct probe_about *about, const cJSON *object, const char *key)
{
    const cJSON *n = base_json_member(object, key);
    if (cJSON_IsNumber(n) && n->valuedouble >= 1 && n->valuedouble < 0x1p31)
        about->n_ctx = (int64_t)n->valuedouble;
}

void probe_about_models(struct probe_about *about, const cJSON *page)
{
    const cJSON *data = base_json_member(page, "data");
    const cJSON *first = cJSON_IsArray(data) ? data->child : NULL;
    const cJSON *owner = base_json_member(first, "owned_by");
    const cJSON *meta = base_json_member(first, "meta");
    take_context(about, first, "max_model_len");
    take_text(about->model, sizeof about->model, first, "id");
    take_size(&about->said.n_bytes, meta, "size");
    take_size(&about->said.n_weights, meta, "n_params");
    take_text(about->said.type, sizeof about->said.type, meta, "ftype");
    for (size_t i = 0; cJSON_IsString(owner) && i < PROBE_N_APIS && !about->api; i++)
        if (probe_apis[i].owner && strcmp(owner->valuestring, probe_apis[i].owner) == 0)
            about->api = &probe_apis[i];
}

void probe_about_props(struct probe_about *about, const cJSON *page)
{
    const cJSON *defaults = base_json_member(page, "default_generation_settings");
    const cJSON *chat = base_json_member(page, "chat_template");
    take_context(about, defaults, "n_ctx");
    take_text(about->said.path, sizeof about->said.path, page, "model_path");
    if (cJSON_IsString(chat) && !about->said.chat_template)
        about->said.chat_template = strdup(chat->valuestring); /* without memory: not said */
    if (base_json_member(defaults, "tfs_z"))                   /* llama-server has lost it */
        about->api = &probe_apis[PROBE_API_IK];
}
