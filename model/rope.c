#include "model/rope.h"

#include <math.h>
#include <string.h>

#include "base/text/number.h"
#include "base/text/quote.h"

/** M_PI is not in C17. */
static const double pi = 3.14159265358979323846;

/** Absent is not the same as none: a factor without a type means linear. */
enum { SCALING_ABSENT = -1 };

static bool parse_scaling(const char *text, size_t n_bytes, int *scaling)
{
    static const char *const names[] = {
        [MODEL_ROPE_NONE] = "none", [MODEL_ROPE_LINEAR] = "linear", [MODEL_ROPE_YARN] = "yarn"};
    for (int i = MODEL_ROPE_NONE; i <= MODEL_ROPE_YARN; i++)
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
    if (options->rope_scaling) {
        if (!parse_scaling(options->rope_scaling, strlen(options->rope_scaling), scaling))
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
                             "%s: key '%s' is %s, supported are none, linear and yarn",
                             gguf_path(keys->file), key, base_quote(&shown, text));
    return status;
}

/** A float that must be above zero; an option that is not 0 replaces the file's. */
static enum status read_positive(const struct model_keys *keys, const char *suffix, float option,
                                 float *value, struct status_why *why)
{
    struct base_number shown;
    enum status status = model_key_f32(keys, suffix, value, NULL, why);
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
static enum status read_factor(struct model_hparams *h, const struct model_keys *keys,
                               const struct model_options *options, struct status_why *why)
{
    const char *suffix = "rope.scaling.factor";
    struct base_number shown;
    float factor = 1;
    bool found = false;
    enum status status = model_key_f32(keys, suffix, &factor, &found, why);
    if (!status && !found) {
        suffix = "rope.scale_linear";
        status = model_key_f32(keys, suffix, &factor, &found, why);
    }
    if (status)
        return status;
    if (factor < 0)
        return status_fail(why, STATUS_FORMAT, "%s: key '%s.%s' is %s, expected a number above 0",
                           gguf_path(keys->file), keys->prefix, suffix,
                           base_float_text(&shown, factor));
    h->rope_factor = factor == 0 ? 1 : factor;
    if (options->rope_freq_scale != 0) {
        h->rope_factor = 1 / options->rope_freq_scale;
        if (!isfinite(h->rope_factor) || !(h->rope_factor > 0))
            return status_fail(why, STATUS_USAGE,
                               "the RoPE frequency scale is %s, expected a number above 0",
                               base_float_text(&shown, options->rope_freq_scale));
    }
    return STATUS_OK;
}

static enum status read_yarn(struct model_hparams *h, const struct model_keys *keys,
                             const struct model_options *options, struct status_why *why)
{
    static const char mix[] = "rope.scaling.yarn_ext_factor";
    static const char mix_range[] = "0 to 1, or below 0 for the default";
    struct base_number shown;
    h->yarn_ext_factor = -1;
    h->yarn_attn_factor = 1;
    h->yarn_beta_fast = 32;
    h->yarn_beta_slow = 1;
    enum status status = model_key_f32(keys, mix, &h->yarn_ext_factor, NULL, why);
    if (!status)
        status = read_positive(keys, "rope.scaling.yarn_attn_factor", options->yarn_attn_factor,
                               &h->yarn_attn_factor, why);
    if (!status)
        status = read_positive(keys, "rope.scaling.yarn_beta_fast", options->yarn_beta_fast,
                               &h->yarn_beta_fast, why);
    if (!status)
        status = read_positive(keys, "rope.scaling.yarn_beta_slow", options->yarn_beta_slow,
                               &h->yarn_beta_slow, why);
    if (status)
        return status;
    float option = options->yarn_ext_factor;
    if (options->has_yarn_ext_factor && !(isfinite(option) && option <= 1))
        return status_fail(why, STATUS_USAGE, "the value for %s.%s is %s, expected %s",
                           keys->prefix, mix, base_float_text(&shown, option), mix_range);
    if (options->has_yarn_ext_factor)
        h->yarn_ext_factor = option;
    if (h->yarn_ext_factor > 1)
        return status_fail(why, STATUS_FORMAT, "%s: key '%s.%s' is %s, expected %s",
                           gguf_path(keys->file), keys->prefix, mix,
                           base_float_text(&shown, h->yarn_ext_factor), mix_range);
    if (h->yarn_ext_factor < 0)
        h->yarn_ext_factor = h->rope_scaling == MODEL_ROPE_YARN ? 1 : 0;
    if (h->yarn_ext_factor > 0 && h->rope_freq_base <= 1)
        return status_fail(
            why, STATUS_FORMAT, "%s: key '%s.rope.freq_base' is %s, expected more than 1 with YaRN",
            gguf_path(keys->file), keys->prefix, base_float_text(&shown, h->rope_freq_base));
    return STATUS_OK;
}

static enum status read_n_rot(struct model_hparams *h, const struct model_keys *keys,
                              struct status_why *why)
{
    h->n_rot = h->head_size;
    struct model_range range = {2, h->head_size};
    enum status status =
        model_key_u32(keys, "rope.dimension_count", range, &h->n_rot, &(bool){false}, why);
    if (status)
        return status;
    if (h->n_rot % 2 != 0)
        return status_fail(why, STATUS_FORMAT,
                           "%s: %u elements of a head are rotated (key '%s.rope.dimension_count'), "
                           "expected an even number",
                           gguf_path(keys->file), h->n_rot, keys->prefix);
    return STATUS_OK;
}

enum status model_rope_read(struct model_hparams *h, const struct model_keys *keys,
                            const struct model_options *options, struct status_why *why)
{
    h->rope_freq_base = 10000;
    h->rope_attn_factor = 1;
    h->rope_original_ctx = h->n_ctx_train;
    int scaling = SCALING_ABSENT;
    enum status status = read_n_rot(h, keys, why);
    if (!status)
        status =
            read_positive(keys, "rope.freq_base", options->rope_freq_base, &h->rope_freq_base, why);
    if (!status)
        status = read_positive(keys, "rope.scaling.attn_factor", 0, &h->rope_attn_factor, why);
    if (!status)
        status = model_key_u32(keys, "rope.scaling.original_context_length",
                               (struct model_range){1, INT32_MAX}, &h->rope_original_ctx,
                               &(bool){false}, why);
    if (!status)
        status = read_factor(h, keys, options, why);
    if (!status)
        status = read_scaling(&scaling, keys, options, why);
    if (status)
        return status;

    if (options->yarn_original_ctx != 0)
        h->rope_original_ctx = options->yarn_original_ctx;
    if (scaling == SCALING_ABSENT)
        scaling = h->rope_factor == 1 ? MODEL_ROPE_NONE : MODEL_ROPE_LINEAR;
    h->rope_scaling = (enum model_rope_scaling)scaling;
    if (h->rope_scaling == MODEL_ROPE_NONE)
        h->rope_factor = 1;
    return read_yarn(h, keys, options, why);
}

/** The pair that turns `turns` times within the original context. */
static double yarn_pair(const struct model_hparams *h, double turns)
{
    return h->n_rot * log(h->rope_original_ctx / (2 * pi * turns)) /
           (2 * log((double)h->rope_freq_base));
}

void model_rope_frequencies(const struct model_hparams *h, const float *factors, double *frequency)
{
    double low = 0;
    double high = 0;
    if (h->yarn_ext_factor > 0) {
        low = fmax(0, floor(yarn_pair(h, (double)h->yarn_beta_fast)));
        high = fmin(h->n_rot - 1.0, ceil(yarn_pair(h, (double)h->yarn_beta_slow)));
    }
    for (uint32_t i = 0; i < h->n_rot / 2; i++) {
        double w = pow((double)h->rope_freq_base, -2.0 * i / h->n_rot) / (double)factors[i];
        double keep = 0; /* how much of the unstretched frequency stays */
        if (h->yarn_ext_factor > 0) {
            double ramp = (i - low) / fmax(0.001, high - low);
            keep = (1 - fmin(1, fmax(0, ramp))) * (double)h->yarn_ext_factor;
        }
        frequency[i] = w * (keep + (1 - keep) / (double)h->rope_factor);
    }
}

double model_rope_magnitude_of(const struct model_hparams *h)
{
    double magnitude = (double)h->rope_attn_factor * (double)h->yarn_attn_factor;
    if (h->yarn_ext_factor > 0 && h->rope_factor > 1)
        magnitude *= 1 + 0.1 * log((double)h->rope_factor);
    return magnitude;
}
