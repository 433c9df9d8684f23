/** Mistral 3 (Ministral and later): YaRN, and queries that grow with their position. */
#include <math.h>
#include <string.h>

#include "model/arch.h"
#include "model/folder/state.h"

static void read(struct model_hparams *h, const struct model_reading *r)
{
    model_temperature_read(h, r);
    float l = model_key_f32(&r->keys, "rope.scaling.yarn_log_multiplier", 0);
    struct model_rope *rope = &h->ropes[MODEL_ROPE_FULL];
    if (rope->yarn_ext_factor > 0 && rope->factor > 1)
        rope->magnitude /= 1 + 0.1 * (double)l * log((double)rope->factor);
}

/** YaRN's magnitude, which GGUF can say where `mscale` is 1; and how queries grow. */
static void write_folder(struct model_folder *f)
{
    struct base_field rope = model_config_rope(f);
    const cJSON *all = base_field_get(rope, "mscale_all_dim").json;
    const cJSON *one = base_field_get(rope, "mscale").json;
    if ((cJSON_IsNumber(one) && one->valuedouble != 1) ||
        (cJSON_IsNumber(all) && !cJSON_IsNumber(one)))
        model_config_fail(f, STATUS_UNSUPPORTED,
                          "member 'mscale' of RoPE is not 1, which GGUF's %s takes for granted",
                          f->arch->name);
    model_write_f32(f, "rope.scaling.yarn_log_multiplier",
                    cJSON_IsNumber(all) ? all->valuedouble : 0);
    model_folder_temperature(f);
}

static const struct model_arch_key keys[] = {
    {.from = "sliding_window", .member = MODEL_MEMBER_FIXED},
    {0},
};

/** The class with pictures is that of Mistral 4, too. */
static bool is_mistral3(const struct model_folder *f)
{
    return !base_field_is(base_field_get(f->text, "model_type"), "mistral4");
}

static const struct model_folder_map folder = {
    .classes = {"Mistral3ForConditionalGeneration", "Ministral3ForCausalLM"},
    .turned = true,
    .own_magnitude = true,
    .is = is_mistral3,
    .write = write_folder,
};

const struct model_arch model_arch_mistral3 = {
    .name = "mistral3",
    .folder = &folder,
    .keys = {keys},
    .yarn_betas = true,
    .needs = {{"rope.scaling.yarn_log_multiplier", MODEL_WHEN_YARN},
              {"rope.scaling.original_context_length", MODEL_WHEN_YARN},
              {"attention.temperature_scale", MODEL_WHEN_YARN,
               "queries do not grow with their position; those of Ministral 3 do"}},
    .read = read,
};
