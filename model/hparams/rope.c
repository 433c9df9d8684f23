#include "model/hparams/rope.h"

#include <math.h>
#include <string.h>

#include "base/text/number.h"
#include "base/text/quote.h"
#include "model/arch.h"

/** M_PI is not in C17. */
static const double pi = 3.14159265358979323846;

/** Absent is not the same as none: a factor without a type means linear. */
enum { SCALING_ABSENT = -1 };

static bool parse_scaling(const char *text, size_t n_bytes, int *scaling)
{
    static const char *const names[] = {
        [MODEL_ROPE_NONE] = "none",
        [MODEL_ROPE_LINEAR] = "linear",
        [MODEL_ROPE_YARN] = "yarn",
        [MODEL_ROPE_LONG] = "longrope",
    };
    for (int i = MODEL_ROPE_NONE; i <= MODEL_ROPE_LONG; i++)
        if (n_bytes == strlen(names[i]) && memcmp(text, names[i], n_bytes) == 0) {
            *scaling = i;
            return true;
        }
    return false;
}

static enum status read_scaling(int *scaling, const struct model_keys *keys,
                                const struct model_options *options, struct status_why *why)
{
    *scaling = SCALING_ABSENT;
    (void)model_key_find(keys, "rope.scaling.type");
    if (options->rope_scaling) {
        if (!parse_scaling(options->rope_scaling, strlen(options->rope_scaling), scaling) ||
            *scaling == MODEL_ROPE_LONG)
            return status_fail(why, STATUS_USAGE,
                               "RoPE scaling \"%s\" does not exist, expected none, linear or yarn",
                               options->rope_scaling);
        return STATUS_OK;
    }
    char key[MODEL_KEY_BYTES];
    model_key_name(keys, "rope.scaling.type", key);
    struct base_string text = {0};
    bool found = false;
    enum status status = gguf_get_string(keys->file, key, &text, &found, why);
    struct base_quoted shown;
    if (!status && found && !parse_scaling(text.data, text.n_bytes, scaling))
        status = status_fail(why, STATUS_UNSUPPORTED,
                             "%s: key '%s' is %s, supported are none, linear, yarn and longrope",
                             gguf_path(keys->file), key, base_quote(&shown, text));
    return status;
}

/** A float that must be above zero; an option that is not 0 replaces the file's. */
static enum status read_positive(const struct model_keys *keys, const char *suffix, float option,
                                 float *value, struct status_why *why)
{
    struct base_number shown;
    enum status status = model_key_f32(keys, suffix, value, why);
    if (status)
        return status;
    if (option != 0) {
        if (!isfinite(option) || option < 0)
            return status_fail(why, STATUS_USAGE,
                               "the value for %s.%s is %s, expected a number above 0", keys->prefix,
                               suffix, base_float_text(&shown, option));
        *value = option;
    }
    if (*value <= 0)
        return status_fail(why, STATUS_FORMAT, "%s: key '%s.%s' is %s, expected a number above 0",
                           gguf_path(keys->file), keys->prefix, suffix,
                           base_float_text(&shown, *value));
    return STATUS_OK;
}

/** The stretch: rope.scaling.factor, or the older rope.scale_linear; 0 stands for none. */
static enum status read_factor(struct model_rope *rope, const struct model_keys *keys,
                               const struct model_options *options, struct status_why *why)
{
    bool has_old = model_key_find(keys, "rope.scale_linear");
    const char *suffix = has_old && !model_key_find(keys, "rope.scaling.factor")
                             ? "rope.scale_linear"
                             : "rope.scaling.factor";
    struct base_number shown;
    float factor = 1;
    enum status status = model_key_f32(keys, suffix, &factor, why);
    if (status)
        return status;
    if (factor < 0)
        return status_fail(why, STATUS_FORMAT, "%s: key '%s.%s' is %s, expected a number above 0",
                           gguf_path(keys->file), keys->prefix, suffix,
                           base_float_text(&shown, factor));
    rope->factor = factor == 0 ? 1 : factor;
    if (options->rope_freq_scale != 0) {
        rope->factor = 1 / options->rope_freq_scale;
        if (!isfinite(rope->factor) || !(rope->factor > 0))
            return status_fail(why, STATUS_USAGE,
                               "the RoPE frequency scale is %s, expected a number above 0",
                               base_float_text(&shown, options->rope_freq_scale));
    }
    return STATUS_OK;
}

static enum status read_ext_factor(struct model_rope *rope, const struct model_keys *keys,
                                   const struct model_options *options, struct status_why *why)
{
    static const char mix[] = "rope.scaling.yarn_ext_factor";
    static const char mix_range[] = "0 to 1, or below 0 for the default";
    struct base_number shown;
    rope->yarn_ext_factor = -1;
    enum status status = model_key_f32(keys, mix, &rope->yarn_ext_factor, why);
    if (status)
        return status;
    float option = options->yarn_ext_factor;
    if (options->has_yarn_ext_factor && !(isfinite(option) && option <= 1))
        return status_fail(why, STATUS_USAGE, "the value for %s.%s is %s, expected %s",
                           keys->prefix, mix, base_float_text(&shown, option), mix_range);
    if (options->has_yarn_ext_factor)
        rope->yarn_ext_factor = option;
    if (rope->yarn_ext_factor > 1)
        return status_fail(why, STATUS_FORMAT, "%s: key '%s.%s' is %s, expected %s",
                           gguf_path(keys->file), keys->prefix, mix,
                           base_float_text(&shown, rope->yarn_ext_factor), mix_range);
    if (rope->yarn_ext_factor < 0)
        rope->yarn_ext_factor = rope->scaling == MODEL_ROPE_YARN ? 1 : 0;
    return STATUS_OK;
}

/** One of YaRN's betas: llama.cpp reads the key of few architectures, and takes its own else. */
static enum status read_beta(const struct model_rope *rope, float *beta, const char *suffix,
                             float option, const struct model_reading *r, struct status_why *why)
{
    struct base_number shown;
    struct base_number theirs;
    float usual = *beta;
    enum status status = read_positive(&r->keys, suffix, option, beta, why);
    if (status || option != 0 || *beta == usual || r->arch->yarn_betas ||
        rope->yarn_ext_factor <= 0)
        return status;
    if (!r->options->llama_compat)
        return model_remark(r->remarks, why, "%s.%s is %s; llama.cpp ignores it and takes %s",
                            r->keys.prefix, suffix, base_float_text(&shown, *beta),
                            base_float_text(&theirs, usual));
    status = model_remark(r->remarks, why, "%s.%s (%s) is ignored, as llama.cpp does",
                          r->keys.prefix, suffix, base_float_text(&shown, *beta));
    *beta = usual;
    return status;
}

/**
 * YaRN's magnitude. The key stands for two settings of the published models, one that replaces it
 * and one that multiplies it. Mostly it repeats it; where not, a person must choose.
 */
static enum status read_magnitude(struct model_rope *rope, const struct model_reading *r,
                                  struct status_why *why)
{
    static const char suffix[] = "rope.scaling.yarn_attn_factor";
    double own = 1;
    if (rope->yarn_ext_factor > 0 && rope->factor > 1)
        own += 0.1 * log((double)rope->factor);
    float value = (float)own;
    bool given = r->options->yarn_attn_factor != 0;
    enum status status = read_positive(&r->keys, suffix, r->options->yarn_attn_factor, &value, why);
    bool replaces = r->arch->yarn_factor && !r->options->llama_compat && rope->yarn_ext_factor > 0;
    if (replaces && !given && !status) {
        rope->magnitude *= (double)value;
        return STATUS_OK;
    }
    rope->magnitude *= given ? own * (double)value : own;
    if (status || given || rope->yarn_ext_factor <= 0 || fabs((double)value - own) <= 1e-4 * own)
        return status;
    struct base_number shown;
    struct base_number usual;
    const char *text = base_float_text(&shown, value);
    return model_remark(r->remarks, why,
                        "%s.%s (%s) has no effect, as in llama.cpp: YaRN's own factor is %s; "
                        "--yarn-attn-factor %s multiplies it",
                        r->keys.prefix, suffix, text, base_float_text(&usual, (float)own), text);
}

static enum status read_yarn(struct model_rope *rope, const struct model_reading *r,
                             struct status_why *why)
{
    const struct model_keys *keys = &r->keys;
    const struct model_options *options = r->options;
    rope->yarn_beta_fast = 32;
    rope->yarn_beta_slow = 1;
    enum status status = read_ext_factor(rope, keys, options, why);
    if (!status)
        status = read_magnitude(rope, r, why);
    if (!status)
        status = read_beta(rope, &rope->yarn_beta_fast, "rope.scaling.yarn_beta_fast",
                           options->yarn_beta_fast, r, why);
    if (!status)
        status = read_beta(rope, &rope->yarn_beta_slow, "rope.scaling.yarn_beta_slow",
                           options->yarn_beta_slow, r, why);
    struct base_number shown;
    if (!status && rope->yarn_ext_factor > 0 && rope->freq_base <= 1)
        status = status_fail(
            why, STATUS_FORMAT, "%s: key '%s.rope.freq_base' is %s, expected more than 1 with YaRN",
            gguf_path(keys->file), keys->prefix, base_float_text(&shown, rope->freq_base));
    return status;
}

static enum status read_n_rot(const struct model_hparams *h, struct model_rope *rope,
                              const struct model_keys *keys, struct status_why *why)
{
    uint32_t size = h->layers[0].key_size;
    enum status status = model_key_u32_or(keys, "rope.dimension_count",
                                          (struct model_range){2, size}, size, &rope->n_rot, why);
    if (!status && rope->n_rot % 2 != 0)
        status = status_fail(why, STATUS_FORMAT,
                             "%s: %u elements of a head are rotated (key "
                             "'%s.rope.dimension_count'), expected an even number",
                             gguf_path(keys->file), rope->n_rot, keys->prefix);
    return status;
}

/** The angles of full attention. */
static enum status read_full(struct model_hparams *h, const struct model_reading *r,
                             struct status_why *why)
{
    struct model_rope *rope = &h->ropes[MODEL_ROPE_FULL];
    const struct model_keys *keys = &r->keys;
    const struct model_options *options = r->options;
    float attn_factor = 1;
    rope->freq_base = 10000;
    rope->has_factors = true;
    int scaling = SCALING_ABSENT;
    enum status status = read_n_rot(h, rope, keys, why);
    if (!status)
        status =
            read_positive(keys, "rope.freq_base", options->rope_freq_base, &rope->freq_base, why);
    if (!status)
        status = read_positive(keys, "rope.scaling.attn_factor", 0, &attn_factor, why);
    rope->magnitude = (double)attn_factor;
    if (!status)
        status = model_key_u32_or(keys, "rope.scaling.original_context_length",
                                  model_positions_range, h->n_ctx_train, &rope->original_ctx, why);
    if (!status)
        status = read_factor(rope, keys, options, why);
    if (!status)
        status = read_scaling(&scaling, keys, options, why);
    if (status)
        return status;

    if (options->yarn_original_ctx != 0)
        rope->original_ctx = options->yarn_original_ctx;
    if (!options->rope_scaling && gguf_tensor_find(keys->file, "rope_factors_long.weight")) {
        if (scaling != SCALING_ABSENT && scaling != MODEL_ROPE_LONG)
            return status_fail(why, STATUS_FORMAT,
                               "%s: key '%s.rope.scaling.type' is not longrope, but there is a "
                               "tensor 'rope_factors_long.weight'",
                               gguf_path(keys->file), keys->prefix);
        scaling = MODEL_ROPE_LONG;
    }
    if (scaling == SCALING_ABSENT)
        scaling = rope->factor == 1 ? MODEL_ROPE_NONE : MODEL_ROPE_LINEAR;
    rope->scaling = (enum model_rope_scaling)scaling;
    if (rope->scaling == MODEL_ROPE_NONE || rope->scaling == MODEL_ROPE_LONG)
        rope->factor = 1;
    return read_yarn(rope, r, why);
}

enum status model_ropes_read(struct model_hparams *h, const struct model_reading *r,
                             struct status_why *why)
{
    (void)model_key_find(&r->keys, "rope.scaling.finetuned");
    h->rope_halves = r->arch->rope_halves;
    enum status status = read_full(h, r, why);
    h->ropes[MODEL_ROPE_FULL].n_factors = h->ropes[MODEL_ROPE_FULL].n_rot / 2;
    struct model_rope *sliding = &h->ropes[MODEL_ROPE_SLIDING];
    *sliding = h->ropes[MODEL_ROPE_FULL];
    sliding->scaling = MODEL_ROPE_NONE;
    sliding->factor = 1;
    sliding->yarn_ext_factor = 0;
    sliding->magnitude = 1;
    sliding->has_factors = false;
    if (!status && r->arch->sliding_rope)
        status = read_positive(&r->keys, "rope.freq_base_swa", 0, &sliding->freq_base, why);
    for (uint32_t i = 0; i < h->n_layers; i++)
        h->layers[i].rope =
            h->layers[i].slides && r->arch->sliding_rope ? MODEL_ROPE_SLIDING : MODEL_ROPE_FULL;
    return status;
}

enum status model_sliding_rope_read(struct model_hparams *h, const struct model_reading *r,
                                    float base, struct status_why *why)
{
    static const char suffix[] = "rope.dimension_count_swa";
    struct model_rope *rope = &h->ropes[MODEL_ROPE_SLIDING];
    if (base > 0)
        rope->freq_base = base;
    enum status status = model_key_positive(&r->keys, "rope.freq_base_swa", &rope->freq_base, why);
    if (!status)
        status = model_key_u32_or(&r->keys, suffix, (struct model_range){2, h->layers[0].key_size},
                                  rope->n_rot, &rope->n_rot, why);
    if (!status && rope->n_rot % 2 != 0)
        status = status_fail(why, STATUS_FORMAT, "%s: key '%s.%s' is %u, expected an even number",
                             gguf_path(r->keys.file), r->keys.prefix, suffix, rope->n_rot);
    return status;
}

/** The pair that turns `turns` times within the original context. */
static double yarn_pair(const struct model_rope *rope, double turns)
{
    return rope->n_rot * log(rope->original_ctx / (2 * pi * turns)) /
           (2 * log((double)rope->freq_base));
}

/** Pairs take the axes in turn; one whose section is used up has no angle in llama.cpp. */
static bool left_out(const struct model_rope *rope, uint32_t pair)
{
    const uint32_t *sections = rope->sections;
    uint32_t n = sections[0] + sections[1] + sections[2];
    return n > 0 && pair % n >= 3 * sections[pair % n % 3];
}

void model_rope_pairs(const struct model_rope *rope, const float *factors, double *frequency)
{
    double low = 0;
    double high = 0;
    if (rope->yarn_ext_factor > 0) {
        low = yarn_pair(rope, (double)rope->yarn_beta_fast);
        high = yarn_pair(rope, (double)rope->yarn_beta_slow);
        low = fmax(0, rope->yarn_unrounded ? low : floor(low));
        high = fmin(rope->n_rot - 1.0, rope->yarn_unrounded ? high : ceil(high));
    }
    for (uint32_t i = 0; i < rope->n_rot / 2; i++) {
        double factor = factors ? (double)factors[i] : 1;
        double w = pow((double)rope->freq_base, -2.0 * i / rope->n_rot) / factor;
        double keep = 0; /* how much of the unstretched frequency stays */
        if (rope->yarn_ext_factor > 0) {
            double ramp = (i - low) / fmax(0.001, high - low);
            keep = (1 - fmin(1, fmax(0, ramp))) * (double)rope->yarn_ext_factor;
        }
        frequency[i] = w * (keep + (1 - keep) / (double)rope->factor);
        if (left_out(rope, i))
            frequency[i] = 0;
    }
}
