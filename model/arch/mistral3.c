/** Mistral 3 (Ministral and later): YaRN, and queries that grow with their position. */
#include <math.h>
#include <string.h>

#include "model/arch.h"
#include "model/folder/state.h"

static enum status read(struct model_hparams *h, const struct model_reading *r,
                        struct status_why *why)
{
    enum status status = model_temperature_read(h, r, why);
    float l = 0;
    if (!status)
        status = model_key_f32(&r->keys, "rope.scaling.yarn_log_multiplier", &l, why);
    struct model_rope *rope = &h->ropes[MODEL_ROPE_FULL];
    if (rope->yarn_ext_factor > 0 && rope->factor > 1)
        rope->magnitude /= 1 + 0.1 * (double)l * log((double)rope->factor);
    return status;
}

/** YaRN's magnitude, which GGUF can say where `mscale` is 1; and how queries grow. */
static enum status write_folder(struct model_folder *f, struct status_why *why)
{
    const cJSON *rope = model_config_any(f, "rope_parameters rope_scaling");
    const cJSON *all = cJSON_GetObjectItemCaseSensitive(rope, "mscale_all_dim");
    const cJSON *one = cJSON_GetObjectItemCaseSensitive(rope, "mscale");
    if ((cJSON_IsNumber(one) && one->valuedouble != 1) ||
        (cJSON_IsNumber(all) && !cJSON_IsNumber(one)))
        return model_config_fail(f, STATUS_UNSUPPORTED, why,
                                 "member 'mscale' of RoPE is not 1, which GGUF's %s takes for "
                                 "granted",
                                 f->arch->name);
    model_write_f32(f, "rope.scaling.yarn_log_multiplier",
                    cJSON_IsNumber(all) ? all->valuedouble : 0);
    return model_folder_temperature(f, why);
}

static const struct model_folder_key folder_keys[] = {
    {"sliding_window", NULL, MODEL_MEMBER_FIXED, 0},
    {0},
};

/** The class with pictures is that of Mistral 4, too. */
static bool is_mistral3(const struct model_folder *f)
{
    const cJSON *type = cJSON_GetObjectItemCaseSensitive(f->text, "model_type");
    return !cJSON_IsString(type) || strcmp(type->valuestring, "mistral4") != 0;
}

static const struct model_folder_map folder = {
    .classes = {"Mistral3ForConditionalGeneration", "Ministral3ForCausalLM"},
    .keys = folder_keys,
    .turned = true,
    .own_magnitude = true,
    .is = is_mistral3,
    .write = write_folder,
};

const struct model_arch model_arch_mistral3 = {
    .name = "mistral3",
    .folder = &folder,
    .yarn_betas = true,
    .needs = {{"rope.scaling.yarn_log_multiplier", MODEL_WHEN_YARN},
              {"rope.scaling.original_context_length", MODEL_WHEN_YARN},
              {"attention.temperature_scale", MODEL_WHEN_YARN,
               "queries do not grow with their position; those of Ministral 3 do"}},
    .read = read,
};
