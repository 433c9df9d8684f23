/* RoPE's members: rope_theta and rope_scaling, or the newer rope_parameters. */
#include <math.h>
#include <string.h>

#include "base/text/quote.h"
#include "model/folder/state.h"

/** M_PI is not in C17. */
static const double pi = 3.14159265358979323846;

/** A number of an object, which must not be null. */
static double take(struct base_field object, const char *name, double absent)
{
    return base_field_get(object, name).json ? model_config_real(object, name) : absent;
}

/** A number that may be null, which counts as absent. */
static double take_any(struct base_field object, const char *name, double absent)
{
    return base_field_find(object, name).json ? model_config_real(object, name) : absent;
}

/** How many positions there were before they were stretched: where nothing says it, all. */
static double take_original(const struct model_folder *f, struct base_field scaling)
{
    static const char name[] = "original_max_position_embeddings";
    double all = model_config_f32_or(f, "max_position_embeddings", 0);
    return model_config_f32_or(f, name, take(scaling, name, all));
}

/** A tensor of n factors; NULL: no memory, which is a failure then. */
static float *give(struct model_folder *f, const char *name, uint32_t n)
{
    float *values = model_folder_give(f, name, n);
    if (!values)
        model_config_fail(f, STATUS_MEMORY, "no memory for RoPE's factors");
    return values;
}

/** Factors of LLaMA 3.1: steps in float32, as its converter takes them. */
static void write_llama3(struct model_folder *f, struct base_field scaling, double theta,
                         uint32_t n_rot)
{
    double factor = take(scaling, "factor", 0), low = take(scaling, "low_freq_factor", 0);
    double high = take(scaling, "high_freq_factor", 0), original = take_original(f, scaling);
    if (!(factor > 0 && low > 0 && high > low && original > 0))
        model_config_fail(f, STATUS_FORMAT,
                          "RoPE's factors are %g, %g, %g of %g positions, expected numbers above "
                          "0, the second below the third",
                          factor, low, high, original);
    float *values = f->json.status ? NULL : give(f, "rope_freqs.weight", n_rot / 2);
    if (!values)
        return;
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
}

/** The magnitude that transformers takes where nothing gives one. */
static double magnitude(double factor, double by)
{
    return factor > 1 ? 0.1 * by * log(factor) + 1 : 1;
}

/** YaRN's members that GGUF has no key for must be as its readers take them for granted. */
static void check_yarn(const struct model_folder *f, struct base_field scaling, double factor,
                       double original)
{
    const struct model_folder_map *map = f->arch->folder;
    double given = take_any(scaling, "attention_factor", (double)NAN);
    double one = map->own_magnitude ? 0 : take_any(scaling, "mscale", 0);
    double all = map->own_magnitude ? 0 : take_any(scaling, "mscale_all_dim", 0);
    double slow = take_any(scaling, "beta_slow", 1);
    double usual = magnitude(factor, 1), found = isnan(given) ? usual : given;
    if (isnan(given) && one != 0 && all != 0)
        found = magnitude(factor, one) / magnitude(factor, all);
    if (!(given > 0 && f->arch->yarn_factor) && fabs(found - usual) > 1e-4 * usual)
        model_config_fail(f, STATUS_UNSUPPORTED,
                          "RoPE of type yarn has the magnitude %g (of attention_factor, or of "
                          "mscale and mscale_all_dim), expected %g, which GGUF's %s takes for "
                          "granted",
                          found, usual, f->arch->name);
    bool rounds = !cJSON_IsFalse(base_field_get(scaling, "truncate").json);
    if (rounds == map->unrounded)
        base_field_fail_member(scaling, "truncate", STATUS_UNSUPPORTED,
                               "is %s, expected %s, which architecture %s computes",
                               rounds ? "not false" : "false", rounds ? "false" : "true",
                               f->arch->name);
    if (original < 2 * pi * slow || original > UINT32_MAX)
        model_config_fail(f, STATUS_FORMAT,
                          "RoPE of type yarn has %g original positions, expected more than %g, so "
                          "that some pair turns %g times",
                          original, 2 * pi * slow, slow);
}

static void write_stretched(struct model_folder *f, struct base_field scaling, const char *type)
{
    static const char *const of_yarn[][2] = {
        {"beta_fast", "rope.scaling.yarn_beta_fast"},
        {"beta_slow", "rope.scaling.yarn_beta_slow"},
        {"attention_factor", "rope.scaling.yarn_attn_factor"},
    };
    double factor = take(scaling, "factor", 0), original = take_original(f, scaling);
    if (!(factor > 0))
        model_config_fail(f, STATUS_FORMAT, "RoPE of type %s has no factor above 0", type);
    model_write_string(f, "rope.scaling.type", type);
    model_write_f32(f, "rope.scaling.factor", factor);
    if (strcmp(type, "yarn") != 0)
        return;
    check_yarn(f, scaling, factor, original);
    if (!f->json.status)
        model_write_u32(f, "rope.scaling.original_context_length", (uint32_t)original);
    for (size_t i = 0; i < sizeof of_yarn / sizeof *of_yarn; i++) {
        double value = take_any(scaling, of_yarn[i][0], 0);
        if (value != 0)
            model_write_f32(f, of_yarn[i][1], value);
    }
}

/** A list of n_rot / 2 factors as a tensor. */
static void write_list(struct model_folder *f, struct base_field scaling, const char *from,
                       const char *to, uint32_t n_rot)
{
    struct base_field list = base_field_list(scaling, from);
    if (base_field_count(list) != n_rot / 2)
        base_field_fail(list, STATUS_FORMAT, "has %zu numbers, expected %u", base_field_count(list),
                        n_rot / 2);
    float *values = f->json.status ? NULL : give(f, to, n_rot / 2);
    for (struct base_field item = {0}; values && base_field_next(list, &item);)
        *values++ = (float)base_field_real(item, "");
}

/** Two lists, and a magnitude by how far the context was stretched. */
static void write_long(struct model_folder *f, struct base_field scaling, uint32_t n_rot)
{
    double most = model_config_f32(f, "max_position_embeddings");
    double original = take_original(f, scaling);
    if (!(original > 1 && original <= INT32_MAX && most >= 1))
        model_config_fail(f, STATUS_FORMAT,
                          "original_max_position_embeddings is %g, expected more than 1", original);
    write_list(f, scaling, "long_factor", "rope_factors_long.weight", n_rot);
    write_list(f, scaling, "short_factor", "rope_factors_short.weight", n_rot);
    if (f->json.status)
        return;
    double ratio = most / original;
    model_write_u32(f, "rope.scaling.original_context_length", (uint32_t)original);
    double own = ratio > 1 ? sqrt(1 + log(ratio) / log(original)) : 1;
    double near = take(scaling, "short_mscale", own), far = take(scaling, "long_mscale", own);
    if (near != far || !(near > 0))
        model_config_fail(f, STATUS_UNSUPPORTED,
                          "RoPE's magnitude is %g for short windows and %g for long ones, expected "
                          "one number above 0, which is what GGUF has",
                          near, far);
    model_write_f32(f, "rope.scaling.attn_factor", near);
}

/** The type, newer or older; NULL: none says it. */
static const char *type_of(struct base_field scaling)
{
    struct base_field item = base_field_get(scaling, "rope_type");
    if (!cJSON_IsString(item.json))
        item = base_field_get(scaling, "type");
    return cJSON_IsString(item.json) ? item.json->valuestring : NULL;
}

static bool is_type(struct base_field scaling, const char *type)
{
    const char *found = type_of(scaling);
    return found && strcmp(found, type) == 0;
}

static void write_scaling(struct model_folder *f, struct base_field scaling, double theta,
                          uint32_t n_rot)
{
    const char *type = type_of(scaling);
    struct base_quoted shown;
    if (!type || is_type(scaling, "default") || is_type(scaling, "mrope") ||
        (f->arch->folder->dynamic && is_type(scaling, "dynamic")))
        return; /* in text all axes are equal */
    if (is_type(scaling, "llama3"))
        write_llama3(f, scaling, theta, n_rot);
    else if (is_type(scaling, "longrope") || is_type(scaling, "su"))
        write_long(f, scaling, n_rot);
    else if (is_type(scaling, "linear") || is_type(scaling, "yarn"))
        write_stretched(f, scaling, type);
    else
        model_config_fail(f, STATUS_UNSUPPORTED,
                          "RoPE has type %s, expected default, linear, yarn, longrope or llama3",
                          base_quote(&shown, (struct base_string){type, strlen(type)}));
}

/** Pairs at the end of a head are still: divided by so much that no angle is left. */
static void write_proportional(struct model_folder *f, double share)
{
    uint32_t n = f->head_size / 2, n_turned = (uint32_t)(share * f->head_size / 2);
    float *values = give(f, "rope_freqs.weight", n);
    for (uint32_t i = 0; values && i < n; i++)
        values[i] = i < n_turned ? 1.0f : 1e30f;
}

/** Hunyuan's: the base is stretched once, whatever the length. */
static void stretch_base(const struct model_folder *f, struct base_field *scaling, double *theta)
{
    double alpha = take_any(*scaling, "alpha", 0), size = f->head_size;
    if (!is_type(*scaling, "dynamic") || !(alpha > 0) || !(size > 2))
        return;
    *theta *= pow(alpha, size / (size - 2));
    scaling->json = NULL;
}

/** A number that may be a list, one for each layer: that of the first layer of a kind. */
static double take_of_kind(const struct model_folder *f, const char *names, const char *kind,
                           double absent)
{
    struct base_field item = model_config_find(f, names);
    if (!cJSON_IsArray(item.json))
        return model_config_f32_or(f, names, absent);
    if (!model_config_find(f, "layer_types").json)
        base_field_fail(item, STATUS_FORMAT, "is a list, and 'layer_types' is missing");
    uint32_t i = 0;
    while (i < MODEL_MAX_BLOCKS && !model_config_is(f, "layer_types", i, kind))
        i++;
    item.json = cJSON_GetArrayItem(item.json, (int)i);
    return item.json ? model_config_real(item, "") : absent;
}

/** RoPE's object, and whether it is the class's, as config.json has none. */
struct object {
    struct base_field json;
    bool of_class;
};

/** A number of RoPE's object, else one beside it; config.json's counts before the class's. */
static double take_either(const struct model_folder *f, struct object object, const char *member,
                          const char *beside, const char *kind, double absent)
{
    struct base_field said = model_config_find(f, beside);
    bool counts = object.of_class && said.json && !model_config_of_class(f, said);
    double value = take_of_kind(f, beside, kind, absent);
    return counts ? value : take(object.json, member, value);
}

static bool is_list(const struct model_folder *f, const char *name)
{
    return cJSON_IsArray(model_config_find(f, name).json);
}

/**
 * Angles of layers that slide: a base and a share of their own, and never stretched.
 * apart: RoPE's object has one for each kind of layers.
 */
static void write_sliding(struct model_folder *f, struct object sliding, bool apart, double n_all)
{
    static const char kind[] = "sliding_attention";
    const char *bases =
        is_list(f, "rope_theta") ? "rope_theta" : "rope_local_base_freq swa_rope_theta";
    const char *shares = is_list(f, "partial_rotary_factors") ? "partial_rotary_factors"
                         : sliding.of_class                   ? "partial_rotary_factor"
                                                              : "";
    double local = take_either(f, sliding, "rope_theta", bases, kind, -1); /* -1: none */
    double share = take_either(f, sliding, "partial_rotary_factor", shares, kind, -1);
    if (apart && local == -1)
        local = model_config_f32_or(f, "rope_theta", -1);
    if (sliding.json.json && share == -1) /* beside, or the whole head */
        share = model_config_f32_or(f, "partial_rotary_factor", 1);
    double factor = take(sliding.json, "factor", 1);
    if (f->arch->sliding_rope && factor != 1)
        model_config_fail(f, STATUS_UNSUPPORTED,
                          "RoPE of layers that slide is stretched by %g, which GGUF's %s cannot "
                          "say",
                          factor, f->arch->name);
    if (!((local > 0 || local == -1) && ((share > 0 && share <= 1) || share == -1)))
        model_config_fail(f, STATUS_FORMAT,
                          "RoPE of layers that slide has the base %g and %g of a head, expected "
                          "numbers above 0, and at most the whole head",
                          local, share);
    if (f->json.status || !f->arch->sliding_rope)
        return;
    if (local > 0)
        model_write_f32(f, "rope.freq_base_swa", local);
    if (f->n_rot == 0 && share > 0 && trunc(share * f->head_size) != n_all)
        model_write_u32(f, "rope.dimension_count_swa", (uint32_t)(share * f->head_size));
}

/** A base without a word about stretching, of a class that stretches unless something else is said.
 */
static void check_alone(const struct model_folder *f, struct object object, double theta)
{
    double own = take(object.json, "rope_theta", theta);
    if (!object.of_class || own == theta || is_type(object.json, "default") ||
        is_type(object.json, "proportional"))
        return;
    model_config_fail(f, STATUS_FORMAT,
                      "member 'rope_theta' is %g, but without 'rope_scaling' or "
                      "'rope_parameters' its class has RoPE of its own, with the base %g and a "
                      "stretch; expected one of the two members",
                      theta, own);
}

struct base_field model_config_rope(const struct model_folder *f)
{
    return model_config_find(f, "rope_parameters rope_scaling");
}

void model_folder_temperature(struct model_folder *f)
{
    struct base_field rope = model_config_rope(f);
    double beta = take_any(rope, "llama_4_scaling_beta", 0);
    if (beta != 0 && !is_type(rope, "yarn"))
        model_config_fail(f, STATUS_UNSUPPORTED,
                          "RoPE has 'llama_4_scaling_beta' and is not of type yarn, whose "
                          "original positions count; expected yarn");
    if (beta != 0)
        model_write_f32(f, "attention.temperature_scale", beta);
}

/** Which part of a head of layers that see all turns; `part`: at most so much. */
static double read_share(const struct model_folder *f, struct object object, const char *kind)
{
    static const char name[] = "partial_rotary_factor";
    double share = take_either(f, object, name,
                               "partial_rotary_factor rotary_pct partial_rotary_factors", kind, 1);
    uint32_t n_rotary = 0;
    if (object.of_class || !base_field_get(object.json, name).json)
        n_rotary =
            model_config_u32_or(f, f->n_rot ? "rotary_dim" : "rotary_dim qk_rope_head_dim", 0);
    if (n_rotary > 0 && f->head_size > 0)
        share = (double)n_rotary / f->head_size;
    double head_size = model_config_u32_or(f, "head_dim", f->head_size); /* of other layers */
    if (f->n_rot > 0 &&
        (fabs(share * f->head_size - f->n_rot) < 0.5 || fabs(share * head_size - f->n_rot) < 0.5))
        share = 1; /* that of the whole head, of which the part that rotates is known */
    return share;
}

void model_folder_rope(struct model_folder *f)
{
    static const char kind[] = "full_attention";
    if (f->arch->unrotated)
        return;
    struct base_field all = model_config_rope(f);
    struct base_field sliding = base_field_get(all, "sliding_attention");
    struct base_field indexed = base_field_get(all, "indexed_attention"); /* dots3 note's class */
    struct base_field of_full = indexed.json ? indexed : base_field_get(all, kind);
    struct base_field compressed = base_field_get(all, "compress"); /* DeepSeek 4 */
    struct object object = {of_full.json      ? of_full
                            : compressed.json ? base_field_get(all, "main")
                                              : all,
                            model_config_of_class(f, all)};
    struct base_field scaling = compressed.json ? compressed : object.json;
    double part = f->arch->folder->full_share > 0 ? f->arch->folder->full_share : 1;
    double theta = take_either(f, object, "rope_theta", "rope_theta", kind, 10000);
    check_alone(f, object, theta);
    double share = read_share(f, object, kind);
    if (!(theta > 0 && share > 0 && share <= part))
        model_config_fail(f, STATUS_FORMAT,
                          "RoPE's base is %g, its share of a head %g, expected numbers above 0, "
                          "and at most %g of the head",
                          theta, share, part);
    bool proportional = is_type(scaling, "proportional");
    stretch_base(f, &scaling, &theta);
    if (f->json.status)
        return;
    if (proportional)
        write_proportional(f, share);
    share = proportional ? 1 : share;
    uint32_t n_rot = (uint32_t)(share * (f->n_rot > 0 ? f->n_rot : f->head_size) / part);
    model_write_f32(f, "rope.freq_base", theta);
    write_sliding(f, (struct object){sliding, object.of_class}, sliding.json || of_full.json,
                  n_rot);
    if (n_rot != f->head_size)
        model_write_u32(f, "rope.dimension_count", n_rot);
    if (scaling.json && !proportional)
        write_scaling(f, scaling, theta, n_rot);
}
