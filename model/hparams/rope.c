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

static int read_scaling(const struct model_keys *keys, const struct model_options *options)
{
    static const char suffix[] = "rope.scaling.type";
    int scaling = SCALING_ABSENT;
    const char *option = options->rope_scaling;
    struct base_quoted shown;
    (void)model_key_find(keys, suffix);
    if (option) {
        if (!parse_scaling(option, strlen(option), &scaling) || scaling == MODEL_ROPE_LONG)
            status_keep(keys->kept, STATUS_USAGE,
                        "RoPE scaling \"%s\" does not exist, expected none, linear or yarn",
                        option);
        return scaling;
    }
    struct base_string text = model_key_string(keys, suffix);
    if (text.data && !parse_scaling(text.data, text.n_bytes, &scaling))
        model_key_fail(keys, STATUS_UNSUPPORTED, suffix,
                       "is %s, supported are none, linear, yarn and longrope",
                       base_quote(&shown, text));
    return scaling;
}

/** A float that must be above zero; an option that is not 0 replaces the file's. */
static float read_positive(const struct model_keys *keys, const char *suffix, float option,
                           float otherwise)
{
    struct base_number shown;
    float value = model_key_f32(keys, suffix, otherwise);
    if (option != 0) {
        if (!isfinite(option) || option < 0)
            status_keep(keys->kept, STATUS_USAGE,
                        "the value for %s.%s is %s, expected a number above 0", keys->prefix,
                        suffix, base_float_text(&shown, option));
        value = option;
    }
    if (value <= 0)
        model_key_fail(keys, STATUS_FORMAT, suffix, "is %s, expected a number above 0",
                       base_float_text(&shown, value));
    return value;
}

/** The stretch: rope.scaling.factor, or the older rope.scale_linear; 0 stands for none. */
static float read_factor(const struct model_keys *keys, const struct model_options *options)
{
    bool has_old = model_key_find(keys, "rope.scale_linear");
    const char *suffix = has_old && !model_key_find(keys, "rope.scaling.factor")
                             ? "rope.scale_linear"
                             : "rope.scaling.factor";
    struct base_number shown;
    float factor = model_key_f32(keys, suffix, 1);
    if (factor < 0)
        model_key_fail(keys, STATUS_FORMAT, suffix, "is %s, expected a number above 0",
                       base_float_text(&shown, factor));
    factor = factor == 0 ? 1 : factor;
    if (options->rope_freq_scale != 0) {
        factor = 1 / options->rope_freq_scale;
        if (!isfinite(factor) || !(factor > 0))
            status_keep(keys->kept, STATUS_USAGE,
                        "the RoPE frequency scale is %s, expected a number above 0",
                        base_float_text(&shown, options->rope_freq_scale));
    }
    return factor;
}

static float read_ext_factor(const struct model_rope *rope, const struct model_keys *keys,
                             const struct model_options *options)
{
    static const char mix[] = "rope.scaling.yarn_ext_factor";
    static const char mix_range[] = "0 to 1, or below 0 for the default";
    struct base_number shown;
    float read = model_key_f32(keys, mix, -1);
    float option = options->yarn_ext_factor;
    if (options->has_yarn_ext_factor && !(isfinite(option) && option <= 1))
        status_keep(keys->kept, STATUS_USAGE, "the value for %s.%s is %s, expected %s",
                    keys->prefix, mix, base_float_text(&shown, option), mix_range);
    if (options->has_yarn_ext_factor)
        read = option;
    if (read > 1)
        model_key_fail(keys, STATUS_FORMAT, mix, "is %s, expected %s",
                       base_float_text(&shown, read), mix_range);
    return read >= 0 ? read : rope->scaling == MODEL_ROPE_YARN ? 1 : 0;
}

/** One of YaRN's betas: llama.cpp reads the key of few architectures, and takes its own else. */
static float read_beta(const struct model_rope *rope, const char *suffix, float usual, float option,
                       const struct model_reading *r)
{
    struct base_number shown;
    struct base_number theirs;
    float beta = read_positive(&r->keys, suffix, option, usual);
    if (option != 0 || beta == usual || r->arch->yarn_betas || rope->yarn_ext_factor <= 0)
        return beta;
    if (r->options->llama_compat)
        model_remark(r->remarks, "%s.%s (%s) is ignored, as llama.cpp does", r->keys.prefix, suffix,
                     base_float_text(&shown, beta));
    else
        model_remark(r->remarks, "%s.%s is %s; llama.cpp ignores it and takes %s", r->keys.prefix,
                     suffix, base_float_text(&shown, beta), base_float_text(&theirs, usual));
    return r->options->llama_compat ? usual : beta;
}

/**
 * YaRN's magnitude. The key stands for two settings of the published models, one that replaces it
 * and one that multiplies it. Mostly it repeats it; where not, a person must choose.
 */
static void read_magnitude(struct model_rope *rope, const struct model_reading *r)
{
    static const char suffix[] = "rope.scaling.yarn_attn_factor";
    double own = 1;
    if (rope->yarn_ext_factor > 0 && rope->factor > 1)
        own += 0.1 * log((double)rope->factor);
    bool given = r->options->yarn_attn_factor != 0;
    float value = read_positive(&r->keys, suffix, r->options->yarn_attn_factor, (float)own);
    bool replaces = r->arch->yarn_factor && !r->options->llama_compat && rope->yarn_ext_factor > 0;
    if (replaces && !given) {
        rope->magnitude *= (double)value;
        return;
    }
    rope->magnitude *= given ? own * (double)value : own;
    if (given || rope->yarn_ext_factor <= 0 || fabs((double)value - own) <= 1e-4 * own)
        return;
    struct base_number shown;
    struct base_number usual;
    const char *text = base_float_text(&shown, value);
    model_remark(r->remarks,
                 "%s.%s (%s) has no effect, as in llama.cpp: YaRN's own factor is %s; "
                 "--yarn-attn-factor %s multiplies it",
                 r->keys.prefix, suffix, text, base_float_text(&usual, (float)own), text);
}

static void read_yarn(struct model_rope *rope, const struct model_reading *r)
{
    const struct model_options *options = r->options;
    struct base_number shown;
    rope->yarn_ext_factor = read_ext_factor(rope, &r->keys, options);
    read_magnitude(rope, r);
    rope->yarn_beta_fast =
        read_beta(rope, "rope.scaling.yarn_beta_fast", 32, options->yarn_beta_fast, r);
    rope->yarn_beta_slow =
        read_beta(rope, "rope.scaling.yarn_beta_slow", 1, options->yarn_beta_slow, r);
    if (rope->yarn_ext_factor > 0 && rope->freq_base <= 1)
        model_key_fail(&r->keys, STATUS_FORMAT, "rope.freq_base",
                       "is %s, expected more than 1 with YaRN",
                       base_float_text(&shown, rope->freq_base));
}

static void read_n_rot(const struct model_hparams *h, struct model_rope *rope,
                       const struct model_reading *r)
{
    const struct model_keys *keys = &r->keys;
    bool none = r->arch->unrotated;
    uint32_t size = h->layers[0].key_size;
    rope->n_rot = model_key_u32_or(keys, "rope.dimension_count",
                                   (struct model_range){none ? 0 : 2, size}, none ? 0 : size);
    if (rope->n_rot % 2 != 0)
        model_keys_fail(keys, STATUS_FORMAT,
                        "%u elements of a head are rotated (key '%s.rope.dimension_count'), "
                        "expected an even number",
                        rope->n_rot, keys->prefix);
}

/** The angles of full attention. */
static void read_full(struct model_hparams *h, const struct model_reading *r)
{
    struct model_rope *rope = &h->ropes[MODEL_ROPE_FULL];
    const struct model_keys *keys = &r->keys;
    const struct model_options *options = r->options;
    rope->has_factors = true;
    read_n_rot(h, rope, r);
    rope->freq_base = read_positive(keys, "rope.freq_base", options->rope_freq_base, 10000);
    rope->magnitude = (double)read_positive(keys, "rope.scaling.attn_factor", 0, 1);
    rope->original_ctx = model_key_u32_or(keys, "rope.scaling.original_context_length",
                                          model_positions_range, h->n_ctx_train);
    rope->factor = read_factor(keys, options);
    int scaling = read_scaling(keys, options);
    if (options->yarn_original_ctx != 0)
        rope->original_ctx = options->yarn_original_ctx;
    if (!options->rope_scaling && gguf_tensor_find(keys->file, "rope_factors_long.weight")) {
        if (scaling != SCALING_ABSENT && scaling != MODEL_ROPE_LONG)
            model_key_fail(keys, STATUS_FORMAT, "rope.scaling.type",
                           "is not longrope, but there is a tensor 'rope_factors_long.weight'");
        scaling = MODEL_ROPE_LONG;
    }
    if (scaling == SCALING_ABSENT)
        scaling = rope->factor == 1 ? MODEL_ROPE_NONE : MODEL_ROPE_LINEAR;
    rope->scaling = (enum model_rope_scaling)scaling;
    if (rope->scaling == MODEL_ROPE_NONE || rope->scaling == MODEL_ROPE_LONG)
        rope->factor = 1;
    read_yarn(rope, r);
}

void model_ropes_read(struct model_hparams *h, const struct model_reading *r)
{
    (void)model_key_find(&r->keys, "rope.scaling.finetuned");
    h->rope_halves = r->arch->rope_halves;
    read_full(h, r);
    h->ropes[MODEL_ROPE_FULL].n_factors = h->ropes[MODEL_ROPE_FULL].n_rot / 2;
    struct model_rope *sliding = &h->ropes[MODEL_ROPE_SLIDING];
    *sliding = h->ropes[MODEL_ROPE_FULL];
    sliding->scaling = MODEL_ROPE_NONE;
    sliding->factor = 1;
    sliding->yarn_ext_factor = 0;
    sliding->magnitude = 1;
    sliding->has_factors = false;
    if (r->arch->sliding_base > 0)
        sliding->freq_base = r->arch->sliding_base;
    if (r->arch->sliding_rope)
        sliding->freq_base = read_positive(&r->keys, "rope.freq_base_swa", 0, sliding->freq_base);
    for (uint32_t i = 0; i < h->n_layers; i++)
        h->layers[i].rope =
            h->layers[i].slides && r->arch->sliding_rope ? MODEL_ROPE_SLIDING : MODEL_ROPE_FULL;
}

void model_sliding_rope_read(struct model_hparams *h, const struct model_reading *r)
{
    static const char suffix[] = "rope.dimension_count_swa";
    struct model_rope *rope = &h->ropes[MODEL_ROPE_SLIDING];
    rope->n_rot = model_key_u32_or(&r->keys, suffix, (struct model_range){2, h->layers[0].key_size},
                                   rope->n_rot);
    if (rope->n_rot % 2 != 0)
        model_key_fail(&r->keys, STATUS_FORMAT, suffix, "is %u, expected an even number",
                       rope->n_rot);
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
