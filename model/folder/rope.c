/* RoPE's members: rope_theta and rope_scaling, or the newer rope_parameters. */
#include <math.h>
#include <string.h>

#include "base/text/quote.h"
#include "model/folder/state.h"

/** M_PI is not in C17. */
static const double pi = 3.14159265358979323846;

/** A number of an object; *value stays where it is absent. */
static enum status take(const struct model_folder *f, const cJSON *object, const char *name,
                        double *value, struct status_why *why)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    if (!item)
        return STATUS_OK;
    if (!cJSON_IsNumber(item) || !isfinite((float)item->valuedouble))
        return model_config_fail(f, STATUS_FORMAT, why, "member '%s' of RoPE is %s number", name,
                                 cJSON_IsNull(item) ? "null, expected a" : "no");
    *value = item->valuedouble;
    return STATUS_OK;
}

/** A number that may be null, which counts as absent. */
static enum status take_any(const struct model_folder *f, const cJSON *object, const char *name,
                            double *value, struct status_why *why)
{
    bool null = cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(object, name));
    return null ? STATUS_OK : take(f, object, name, value, why);
}

/** How many positions there were before they were stretched: where nothing says it, all. */
static enum status take_original(const struct model_folder *f, const cJSON *scaling, double *value,
                                 struct status_why *why)
{
    static const char name[] = "original_max_position_embeddings";
    enum status status = model_config_f32(f, "max_position_embeddings", false, value, why);
    if (!status)
        status = take(f, scaling, name, value, why);
    return status ? status : model_config_f32(f, name, false, value, why);
}

/** Factors of LLaMA 3.1: steps in float32, as its converter takes them. */
static enum status write_llama3(struct model_folder *f, const cJSON *scaling, double theta,
                                uint32_t n_rot, struct status_why *why)
{
    double factor = 0, low = 0, high = 0, original = 0;
    enum status status = take(f, scaling, "factor", &factor, why);
    if (!status)
        status = take(f, scaling, "low_freq_factor", &low, why);
    if (!status)
        status = take(f, scaling, "high_freq_factor", &high, why);
    if (!status)
        status = take_original(f, scaling, &original, why);
    if (status)
        return status;
    if (!(factor > 0 && low > 0 && high > low && original > 0))
        return model_config_fail(f, STATUS_FORMAT, why,
                                 "RoPE's factors are %g, %g, %g of %g positions, expected numbers "
                                 "above 0, the second below the third",
                                 factor, low, high, original);
    float *values = model_folder_give(f, "rope_freqs.weight", n_rot / 2);
    if (!values)
        return status_fail(why, STATUS_MEMORY, "no memory for RoPE's factors");
    double part = f->arch->folder->full_share;
    uint32_t n_turned = part > 0 ? (uint32_t)(part * n_rot) : n_rot;
    for (uint32_t i = 0; i < n_rot / 2; i++)
        values[i] = 1;
    for (uint32_t i = 0; i < n_turned / 2; i++) {
        float frequency = 1.0f / powf((float)theta, (float)(2 * i) / (float)n_turned);
        float wave = (float)(2 * pi) / frequency;
        values[i] = (float)factor;
        if (wave < (float)(original / high))
            values[i] = 1;
        else if (wave <= (float)(original / low)) {
            float smooth = ((float)original / wave - (float)low) / (float)(high - low);
            values[i] = 1 / ((1 - smooth) / (float)factor + smooth);
        }
    }
    return STATUS_OK;
}

/** The magnitude that transformers takes where nothing gives one. */
static double magnitude(double factor, double by)
{
    return factor > 1 ? 0.1 * by * log(factor) + 1 : 1;
}

/** YaRN's members that GGUF has no key for must be as its readers take them for granted. */
static enum status check_yarn(const struct model_folder *f, const cJSON *scaling, double factor,
                              double original, struct status_why *why)
{
    const struct model_folder_map *map = f->arch->folder;
    double given = (double)NAN, one = 0, all = 0, slow = 1;
    enum status status = take_any(f, scaling, "attention_factor", &given, why);
    if (!status && !map->own_magnitude)
        status = take_any(f, scaling, "mscale", &one, why);
    if (!status && !map->own_magnitude)
        status = take_any(f, scaling, "mscale_all_dim", &all, why);
    if (!status)
        status = take_any(f, scaling, "beta_slow", &slow, why);
    if (status)
        return status;
    double usual = magnitude(factor, 1), found = isnan(given) ? usual : given;
    if (isnan(given) && one != 0 && all != 0)
        found = magnitude(factor, one) / magnitude(factor, all);
    if (!(given > 0 && f->arch->yarn_factor) && fabs(found - usual) > 1e-4 * usual)
        return model_config_fail(f, STATUS_UNSUPPORTED, why,
                                 "RoPE of type yarn has the magnitude %g (of attention_factor, or "
                                 "of mscale and mscale_all_dim), expected %g, which GGUF's %s "
                                 "takes for granted",
                                 found, usual, f->arch->name);
    bool rounds = !cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(scaling, "truncate"));
    if (rounds == map->unrounded)
        return model_config_fail(f, STATUS_UNSUPPORTED, why,
                                 "member 'truncate' of RoPE is %s, expected %s, which architecture "
                                 "%s computes",
                                 rounds ? "not false" : "false", rounds ? "false" : "true",
                                 f->arch->name);
    if (original < 2 * pi * slow || original > UINT32_MAX)
        return model_config_fail(f, STATUS_FORMAT, why,
                                 "RoPE of type yarn has %g original positions, expected more than "
                                 "%g, so that some pair turns %g times",
                                 original, 2 * pi * slow, slow);
    return STATUS_OK;
}

static enum status write_stretched(struct model_folder *f, const cJSON *scaling, const char *type,
                                   struct status_why *why)
{
    static const char *const of_yarn[][2] = {
        {"beta_fast", "rope.scaling.yarn_beta_fast"},
        {"beta_slow", "rope.scaling.yarn_beta_slow"},
        {"attention_factor", "rope.scaling.yarn_attn_factor"},
    };
    double factor = 0, original = 0;
    enum status status = take(f, scaling, "factor", &factor, why);
    if (!status)
        status = take_original(f, scaling, &original, why);
    if (status)
        return status;
    if (!(factor > 0))
        return model_config_fail(f, STATUS_FORMAT, why, "RoPE of type %s has no factor above 0",
                                 type);
    model_write_string(f, "rope.scaling.type", type);
    model_write_f32(f, "rope.scaling.factor", factor);
    bool yarn = strcmp(type, "yarn") == 0;
    if (yarn)
        status = check_yarn(f, scaling, factor, original, why);
    if (yarn && !status)
        model_write_u32(f, "rope.scaling.original_context_length", (uint32_t)original);
    for (size_t i = 0; yarn && !status && i < sizeof of_yarn / sizeof *of_yarn; i++) {
        double value = 0;
        status = take_any(f, scaling, of_yarn[i][0], &value, why);
        if (value != 0)
            model_write_f32(f, of_yarn[i][1], value);
    }
    return status;
}

/** A list of n_rot / 2 factors as a tensor. */
static enum status write_list(struct model_folder *f, const cJSON *scaling, const char *from,
                              const char *to, uint32_t n_rot, struct status_why *why)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(scaling, from);
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != (int)(n_rot / 2))
        return model_config_fail(f, STATUS_FORMAT, why,
                                 "member '%s' of RoPE has %d numbers, expected %u", from,
                                 cJSON_GetArraySize(list), n_rot / 2);
    float *values = model_folder_give(f, to, n_rot / 2);
    if (!values)
        return status_fail(why, STATUS_MEMORY, "no memory for RoPE's factors");
    for (const cJSON *item = list->child; item; item = item->next) {
        if (!cJSON_IsNumber(item))
            return model_config_fail(f, STATUS_FORMAT, why, "member '%s' of RoPE has no number",
                                     from);
        *values++ = (float)item->valuedouble;
    }
    return STATUS_OK;
}

/** Two lists, and a magnitude by how far the context was stretched. */
static enum status write_long(struct model_folder *f, const cJSON *scaling, uint32_t n_rot,
                              struct status_why *why)
{
    double most = 0, original = 0;
    enum status status = model_config_f32(f, "max_position_embeddings", true, &most, why);
    if (!status)
        status = take_original(f, scaling, &original, why);
    if (!status && !(original > 1 && original <= INT32_MAX && most >= 1))
        status = model_config_fail(f, STATUS_FORMAT, why,
                                   "original_max_position_embeddings is %g, expected more than 1",
                                   original);
    if (!status)
        status = write_list(f, scaling, "long_factor", "rope_factors_long.weight", n_rot, why);
    if (!status)
        status = write_list(f, scaling, "short_factor", "rope_factors_short.weight", n_rot, why);
    if (status)
        return status;
    double ratio = most / original;
    model_write_u32(f, "rope.scaling.original_context_length", (uint32_t)original);
    model_write_f32(f, "rope.scaling.attn_factor",
                    ratio > 1 ? sqrt(1 + log(ratio) / log(original)) : 1);
    return STATUS_OK;
}

static enum status write_scaling(struct model_folder *f, const cJSON *scaling, double theta,
                                 uint32_t n_rot, struct status_why *why)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(scaling, "rope_type");
    if (!cJSON_IsString(item))
        item = cJSON_GetObjectItemCaseSensitive(scaling, "type");
    const char *type = cJSON_IsString(item) ? item->valuestring : "default";
    struct base_quoted shown;
    if (strcmp(type, "default") == 0 || strcmp(type, "mrope") == 0) /* in text all axes are equal */
        return STATUS_OK;
    if (strcmp(type, "llama3") == 0)
        return write_llama3(f, scaling, theta, n_rot, why);
    if (strcmp(type, "longrope") == 0 || strcmp(type, "su") == 0)
        return write_long(f, scaling, n_rot, why);
    if (strcmp(type, "linear") == 0 || strcmp(type, "yarn") == 0)
        return write_stretched(f, scaling, type, why);
    return model_config_fail(f, STATUS_UNSUPPORTED, why,
                             "RoPE has type %s, expected default, linear, yarn, longrope or llama3",
                             base_quote(&shown, (struct base_string){type, strlen(type)}));
}

/** Pairs at the end of a head are still: divided by so much that no angle is left. */
static enum status write_proportional(struct model_folder *f, double share, struct status_why *why)
{
    uint32_t n = f->head_size / 2, n_turned = (uint32_t)(share * f->head_size / 2);
    float *values = model_folder_give(f, "rope_freqs.weight", n);
    if (!values)
        return status_fail(why, STATUS_MEMORY, "no memory for RoPE's factors");
    for (uint32_t i = 0; i < n; i++)
        values[i] = i < n_turned ? 1.0f : 1e30f;
    return STATUS_OK;
}

static bool is_type(const cJSON *scaling, const char *type)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(scaling, "rope_type");
    if (!cJSON_IsString(item))
        item = cJSON_GetObjectItemCaseSensitive(scaling, "type");
    return cJSON_IsString(item) && strcmp(item->valuestring, type) == 0;
}

/** Hunyuan's: the base is stretched once, whatever the length. */
static enum status stretch_base(struct model_folder *f, const cJSON **scaling, double *theta,
                                struct status_why *why)
{
    double alpha = 0, size = f->head_size;
    enum status status = take_any(f, *scaling, "alpha", &alpha, why);
    if (status || !is_type(*scaling, "dynamic") || !(alpha > 0) || !(size > 2))
        return status;
    *theta *= pow(alpha, size / (size - 2));
    *scaling = NULL;
    return STATUS_OK;
}

/** A number that may be a list, one for each layer: that of the first layer of a kind. */
static enum status take_of_kind(const struct model_folder *f, const char *names, const char *kind,
                                double *value, struct status_why *why)
{
    const cJSON *item = model_config_any(f, names);
    if (!cJSON_IsArray(item))
        return model_config_f32(f, names, false, value, why);
    if (!model_config_find(f, "layer_types"))
        return model_config_fail(f, STATUS_FORMAT, why,
                                 "member '%s' is a list, and 'layer_types' is missing",
                                 item->string);
    uint32_t i = 0;
    while (i < MODEL_MAX_BLOCKS && !model_config_is(f, "layer_types", i, kind))
        i++;
    const cJSON *number = cJSON_GetArrayItem(item, (int)i);
    if (number && (!cJSON_IsNumber(number) || !isfinite((float)number->valuedouble)))
        return model_config_fail(f, STATUS_FORMAT, why, "member '%s' has no number for layer %u",
                                 item->string, i);
    *value = number ? number->valuedouble : *value;
    return STATUS_OK;
}

/** RoPE's object, and whether it is the class's, as config.json has none. */
struct object {
    const cJSON *json;
    bool of_class;
};

/** A number of RoPE's object, else one beside it; config.json's counts before the class's. */
static enum status take_either(const struct model_folder *f, struct object object,
                               const char *member, const char *beside, const char *kind,
                               double *value, struct status_why *why)
{
    const cJSON *said = model_config_any(f, beside);
    bool counts = object.of_class && said && !model_config_of_class(f, said);
    enum status status = take_of_kind(f, beside, kind, value, why);
    return status || counts ? status : take(f, object.json, member, value, why);
}

/**
 * Angles of layers that slide: a base and a share of their own, and never stretched.
 * apart: RoPE's object has one for each kind of layers.
 */
static enum status write_sliding(struct model_folder *f, struct object sliding, bool apart,
                                 double n_all, struct status_why *why)
{
    static const char kind[] = "sliding_attention";
    double local = -1, share = -1, factor = 1; /* -1: none */
    const char *bases = cJSON_IsArray(model_config_find(f, "rope_theta"))
                            ? "rope_theta"
                            : "rope_local_base_freq swa_rope_theta";
    enum status status = take_either(f, sliding, "rope_theta", bases, kind, &local, why);
    const char *shares = cJSON_IsArray(model_config_find(f, "partial_rotary_factors"))
                             ? "partial_rotary_factors"
                         : sliding.of_class ? "partial_rotary_factor"
                                            : "";
    if (!status)
        status = take_either(f, sliding, "partial_rotary_factor", shares, kind, &share, why);
    if (!status && apart && local == -1)
        status = model_config_f32(f, "rope_theta", false, &local, why);
    if (!status && sliding.json && share == -1) { /* beside, or the whole head */
        share = 1;
        status = model_config_f32(f, "partial_rotary_factor", false, &share, why);
    }
    if (!status)
        status = take(f, sliding.json, "factor", &factor, why);
    if (!status && f->arch->sliding_rope && factor != 1)
        return model_config_fail(f, STATUS_UNSUPPORTED, why,
                                 "RoPE of layers that slide is stretched by %g, which GGUF's %s "
                                 "cannot say",
                                 factor, f->arch->name);
    if (!status && !((local > 0 || local == -1) && ((share > 0 && share <= 1) || share == -1)))
        return model_config_fail(f, STATUS_FORMAT, why,
                                 "RoPE of layers that slide has the base %g and %g of a head, "
                                 "expected numbers above 0, and at most the whole head",
                                 local, share);
    if (local > 0 && f->arch->sliding_rope)
        model_write_f32(f, "rope.freq_base_swa", local);
    if (share > 0 && f->arch->sliding_rope && trunc(share * f->head_size) != n_all)
        model_write_u32(f, "rope.dimension_count_swa", (uint32_t)(share * f->head_size));
    return status;
}

/** A base without a word about stretching, of a class that stretches unless something else is said.
 */
static enum status check_alone(const struct model_folder *f, struct object object, double theta,
                               struct status_why *why)
{
    double own = theta;
    enum status status = take(f, object.json, "rope_theta", &own, why);
    if (status || !object.of_class || own == theta || is_type(object.json, "default") ||
        is_type(object.json, "proportional"))
        return status;
    return model_config_fail(f, STATUS_FORMAT, why,
                             "member 'rope_theta' is %g, but without 'rope_scaling' or "
                             "'rope_parameters' its class has RoPE of its own, with the base %g "
                             "and a stretch; expected one of the two members",
                             theta, own);
}

enum status model_folder_temperature(struct model_folder *f, struct status_why *why)
{
    const cJSON *rope = model_config_any(f, "rope_parameters rope_scaling");
    double beta = 0;
    enum status status = take_any(f, rope, "llama_4_scaling_beta", &beta, why);
    if (!status && beta != 0 && !is_type(rope, "yarn"))
        return model_config_fail(f, STATUS_UNSUPPORTED, why,
                                 "RoPE has 'llama_4_scaling_beta' and is not of type yarn, whose "
                                 "original positions count; expected yarn");
    if (beta != 0)
        model_write_f32(f, "attention.temperature_scale", beta);
    return status;
}

enum status model_folder_rope(struct model_folder *f, struct status_why *why)
{
    const cJSON *full = model_config_any(f, "rope_parameters rope_scaling"); /* newer, older */
    bool of_class = model_config_of_class(f, full);
    const cJSON *sliding = cJSON_GetObjectItemCaseSensitive(full, "sliding_attention");
    const cJSON *scaling = cJSON_GetObjectItemCaseSensitive(full, "full_attention");
    const cJSON *compressed = cJSON_GetObjectItemCaseSensitive(full, "compress"); /* DeepSeek 4 */
    bool by_kind = scaling != NULL;
    full = scaling ? scaling : compressed ? cJSON_GetObjectItemCaseSensitive(full, "main") : full;
    scaling = compressed ? compressed : full;
    double theta = 10000, share = 1;
    double part = f->arch->folder->full_share > 0 ? f->arch->folder->full_share : 1;
    static const char kind[] = "full_attention";
    struct object object = {full, of_class};
    enum status status = take_either(f, object, "rope_theta", "rope_theta", kind, &theta, why);
    if (!status)
        status = check_alone(f, object, theta, why);
    if (!status)
        status = take_either(f, object, "partial_rotary_factor",
                             "partial_rotary_factor rotary_pct partial_rotary_factors", kind,
                             &share, why);
    uint32_t n_rotary = 0;
    if (!status && (of_class || !cJSON_GetObjectItemCaseSensitive(full, "partial_rotary_factor")))
        status = model_config_u32(f, f->n_rot ? "rotary_dim" : "rotary_dim qk_rope_head_dim", false,
                                  &n_rotary, why);
    if (n_rotary > 0 && f->head_size > 0)
        share = (double)n_rotary / f->head_size;
    if (f->n_rot > 0 && fabs(share * f->head_size - f->n_rot) < 0.5)
        share = 1; /* that of the whole head, of which the part that rotates is known */
    if (status)
        return status;
    if (!(theta > 0 && share > 0 && share <= part))
        return model_config_fail(
            f, STATUS_FORMAT, why,
            "RoPE's base is %g, its share of a head %g, expected numbers above "
            "0, and at most %g of the head",
            theta, share, part);
    bool proportional = is_type(scaling, "proportional");
    status = stretch_base(f, &scaling, &theta, why);
    if (!status && proportional)
        status = write_proportional(f, share, why);
    if (status)
        return status;
    share = proportional ? 1 : share;
    scaling = proportional ? NULL : scaling;
    uint32_t n_rot = (uint32_t)(share * (f->n_rot > 0 ? f->n_rot : f->head_size) / part);
    model_write_f32(f, "rope.freq_base", theta);
    status = write_sliding(f, (struct object){sliding, of_class}, sliding || by_kind, n_rot, why);
    if (n_rot != f->head_size)
        model_write_u32(f, "rope.dimension_count", n_rot);
    return status || !scaling ? status : write_scaling(f, scaling, theta, n_rot, why);
}
