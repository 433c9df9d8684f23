/* Hyper-parameters as the model reads them: keys that a file leaves out have their defaults. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "clients/conversion/keys.h"

enum kind { U32, F32, F64, BOOL, ENUM };

/** A member of a struct, and the key that people know it by. */
struct field {
    const char *key;
    enum kind kind;
    size_t at;
};

#define MODEL(member) offsetof(struct model_hparams, member)
static const struct field of_model[] = {
    {"block_count", U32, MODEL(n_layers)},
    {"embedding_length", U32, MODEL(n_embd)},
    {"context_length", U32, MODEL(n_ctx_train)},
    {"attention.layer_norm_epsilon", F32, MODEL(eps)},
    {"embedding_scale", F32, MODEL(embedding_scale)},
    {"residual_scale", F32, MODEL(residual_scale)},
    {"logit_scale", F32, MODEL(logit_scale)},
    {"attn_logit_softcapping", F32, MODEL(attn_soft_cap)},
    {"final_logit_softcapping", F32, MODEL(logit_soft_cap)},
    {"attention.temperature_scale", F32, MODEL(temperature.scale)},
    {"attention.temperature_length", U32, MODEL(temperature.length)},
    {"expert_count", U32, MODEL(experts.n)},
    {"expert_used_count", U32, MODEL(experts.n_used)},
    {"expert_shared_feed_forward_length", U32, MODEL(experts.n_ff_shared)},
    {"expert_group_count", U32, MODEL(experts.n_groups)},
    {"expert_group_used_count", U32, MODEL(experts.n_groups_used)},
    {"expert_weights_norm", BOOL, MODEL(experts.normalise)},
    {"expert_weights_scale", F32, MODEL(experts.scale)},
    {"expert_gating_func", ENUM, MODEL(experts.gating)},
    {"attention.q_lora_rank", U32, MODEL(q_rank)},
    {"attention.kv_lora_rank", U32, MODEL(kv_rank)},
    {0},
};

#define LAYER(member) offsetof(struct model_layer_shape, member)
static const struct field of_layers[] = {
    {"attention.head_count", U32, LAYER(n_heads)},
    {"attention.sliding_window", U32, LAYER(window)},
    {"attention.sliding_window_pattern", BOOL, LAYER(slides)},
    {"attention.scale", F32, LAYER(scale)},
    {"feed_forward_length", U32, LAYER(n_ff)},
    {"experts of the layer", U32, LAYER(n_experts)},
    {"expert_feed_forward_length", U32, LAYER(n_ff_expert)},
    {0},
};
/** Where keys and values are made of compressed rows, one file may have them apart. */
static const struct field of_heads[] = {
    {"attention.head_count_kv", U32, LAYER(n_kv_heads)},
    {"attention.key_length", U32, LAYER(key_size)},
    {"attention.value_length", U32, LAYER(value_size)},
    {0},
};

#define ROPE(member) offsetof(struct model_rope, member)
static const struct field of_ropes[] = {
    {"rope.dimension_count", U32, ROPE(n_rot)},
    {"rope.freq_base", F32, ROPE(freq_base)},
    {"rope.scaling.type", ENUM, ROPE(scaling)},
    {0},
};
static const struct field of_scaling[] = {
    {"rope.scaling.factor", F32, ROPE(factor)},
    {"rope.scaling.original_context_length", U32, ROPE(original_ctx)},
    {"rope.scaling.attn_factor", F64, ROPE(magnitude)},
    {"rope.scaling.yarn_beta_fast", F32, ROPE(yarn_beta_fast)},
    {"rope.scaling.yarn_beta_slow", F32, ROPE(yarn_beta_slow)},
    {0},
};

static double value_of(const struct field *field, const void *object)
{
    const char *at = (const char *)object + field->at;
    float f32;
    uint32_t u32;
    double f64;
    switch (field->kind) {
    case F32:
        memcpy(&f32, at, sizeof f32);
        return (double)f32;
    case F64:
        memcpy(&f64, at, sizeof f64);
        return f64;
    case BOOL:
        return *at != 0;
    default: /* enumerations have the size of an int, here */
        memcpy(&u32, at, sizeof u32);
        return u32;
    }
}

/** A product of logarithms may be rounded in more than one way; what is stored may not. */
static bool same(const struct field *field, double a, double b)
{
    return a == b || (field->kind == F64 && fabs(a - b) <= 1e-6 * fabs(a));
}

static void write_value(char text[CONV_VALUE_BYTES], const struct field *field, double value,
                        int64_t layer)
{
    static const char *const scalings[] = {"none", "linear", "yarn", "longrope"};
    size_t used = 0;
    if (field->kind == BOOL)
        used = (size_t)snprintf(text, CONV_VALUE_BYTES, "%s", value != 0 ? "true" : "false");
    else if (strcmp(field->key, "rope.scaling.type") == 0 && value >= 0 && value < 4)
        used = (size_t)snprintf(text, CONV_VALUE_BYTES, "%s", scalings[(int)value]);
    else
        used = (size_t)snprintf(text, CONV_VALUE_BYTES, "%.9g", value);
    if (layer >= 0)
        snprintf(text + used, CONV_VALUE_BYTES - used, " (layer %d)", (int)layer);
}

struct both {
    struct conv_result *out;
    const struct model_hparams *folder, *file;
    bool lacks_windows; /* the file has no key of windows, which its reader has by default */
};

static enum status differ(const struct both *b, const struct field *field, const char *suffix,
                          const double values[2], int64_t layer, struct status_why *why)
{
    char texts[2][CONV_VALUE_BYTES], key[CONV_KEY_BYTES];
    snprintf(key, sizeof key, "%s.%s%s", b->folder->architecture, field->key, suffix);
    write_value(texts[0], field, values[0], layer);
    write_value(texts[1], field, values[1], layer);
    return conv_differ_text(b->out, CONV_HPARAM, key, texts[0], texts[1], why);
}

static enum status compare_fields(const struct both *b, const struct field *field,
                                  const char *suffix, const void *folder, const void *file,
                                  struct status_why *why)
{
    enum status status = STATUS_OK;
    for (; field->key && !status; field++) {
        const double values[2] = {value_of(field, folder), value_of(field, file)};
        b->out->n_hparams++;
        if (!same(field, values[0], values[1]))
            status = differ(b, field, suffix, values, -1, why);
    }
    return status;
}

/** The first layer in which each differs. */
static enum status compare_layers(const struct both *b, const struct field *field,
                                  struct status_why *why)
{
    enum status status = STATUS_OK;
    uint32_t n = b->folder->n_layers < b->file->n_layers ? b->folder->n_layers : b->file->n_layers;
    for (; field->key && !status; field++) {
        b->out->n_hparams++;
        for (uint32_t i = 0; i < n; i++) {
            const double values[2] = {value_of(field, &b->folder->layers[i]),
                                      value_of(field, &b->file->layers[i])};
            bool of_windows = field->at == LAYER(window) || field->at == LAYER(slides);
            bool unsaid = of_windows && b->lacks_windows && b->folder->layers[i].window == 0;
            if (unsaid || same(field, values[0], values[1]))
                continue;
            status = differ(b, field, "", values, i, why);
            break;
        }
    }
    return status;
}

static bool uses(const struct model_hparams *h, int rope)
{
    bool does = false;
    for (uint32_t i = 0; i < h->n_layers; i++)
        does |= h->layers[i].rope == rope;
    return does;
}

static enum status compare_ropes(const struct both *b, struct status_why *why)
{
    enum status status = STATUS_OK;
    for (int use = 0; use < MODEL_N_ROPES && !status; use++) {
        const struct model_rope *folder = &b->folder->ropes[use], *file = &b->file->ropes[use];
        const char *suffix = use == MODEL_ROPE_SLIDING ? "_swa" : "";
        if (!uses(b->folder, use) && !uses(b->file, use))
            continue;
        status = compare_fields(b, of_ropes, suffix, folder, file, why);
        bool scaled = folder->scaling != MODEL_ROPE_NONE && folder->scaling == file->scaling;
        if (!status && scaled)
            status = compare_fields(b, of_scaling, suffix, folder, file, why);
    }
    return status;
}

/** Whether a file leaves out what some architectures' readers then take for granted. */
static bool lacks_windows(const struct gguf_file *file, const char *architecture)
{
    char key[CONV_KEY_BYTES];
    snprintf(key, sizeof key, "%s.attention.sliding_window", architecture);
    return !gguf_kv_find(file, key);
}

enum status conv_compare_hparams(struct conv_result *out, const struct model_hparams *folder,
                                 const struct gguf_file *file, const struct model_hparams *read,
                                 struct status_why *why)
{
    struct both b = {out, folder, read, lacks_windows(file, read->architecture)};
    enum status status = STATUS_OK;
    if (strcmp(folder->architecture, read->architecture) != 0)
        status = conv_differ_text(out, CONV_HPARAM, "general.architecture", folder->architecture,
                                  read->architecture, why);
    if (!status)
        status = compare_fields(&b, of_model, "", folder, read, why);
    if (!status)
        status = compare_layers(&b, of_layers, why);
    if (!status && folder->compressed_keys == read->compressed_keys)
        status = compare_layers(&b, of_heads, why);
    return status ? status : compare_ropes(&b, why);
}
