#include <stdlib.h>
#include <string.h>

#include "base/text/number.h"
#include "model/arch.h"
#include "model/hparams/rope.h"

/** general.name, cut to what fits and without control characters. */
static enum status read_name(struct model_hparams *h, const struct gguf_file *file,
                             struct status_why *why)
{
    struct base_string text = {0};
    bool found = false;
    enum status status = gguf_get_string(file, "general.name", &text, &found, why);
    if (status || !found)
        return status;
    size_t n = text.n_bytes < sizeof h->name - 1 ? text.n_bytes : sizeof h->name - 1;
    for (size_t i = 0; i < n; i++)
        h->name[i] = (unsigned char)text.data[i] < ' ' ? ' ' : text.data[i];
    h->name[n] = '\0';
    return STATUS_OK;
}

static enum status read_sizes(struct model_hparams *h, struct model_reading *r,
                              struct status_why *why)
{
    static const struct model_key_read sizes[] = {{"block_count", .required = true},
                                                  {"embedding_length", .required = true},
                                                  {"context_length", .required = true},
                                                  {0}};
    enum status status = model_hparams_read_keys(h, r, sizes, why);
    r->n_blocks = h->n_layers;
    if (!status)
        status = model_nextn_read(h, r, why);
    if (status)
        return status;
    h->layers = calloc(r->n_blocks, sizeof *h->layers);
    if (!h->layers)
        return status_fail(why, STATUS_MEMORY, "no memory for %u layers", r->n_blocks);
    for (uint32_t i = 0; i < r->n_blocks; i++) {
        h->layers[i].kv_layer = i;
        h->layers[i].kept = -1;
        h->layers[i].activation.kind = h->layers[i].expert_activation.kind = r->arch->activation;
    }
    return STATUS_OK;
}

static enum status read_eps(struct model_hparams *h, const struct model_reading *r,
                            struct status_why *why)
{
    static const char rms[] = "attention.layer_norm_rms_epsilon";
    float given = 0;
    enum status status =
        r->arch->rms_by_key ? model_key_f32(&r->keys, rms, &given, why) : STATUS_OK;
    h->layer_norm = r->arch->layer_norm && given == 0;
    const char *suffix = h->layer_norm ? "attention.layer_norm_epsilon" : rms;
    if (!status)
        status = model_key_require(&r->keys, suffix, "a float", why);
    if (!status)
        status = model_key_f32(&r->keys, suffix, &h->eps, why);
    struct base_number shown;
    if (!status && !(h->eps > 0 && h->eps < 1))
        status = status_fail(
            why, STATUS_FORMAT, "%s: key '%s.%s' is %s, expected a number between 0 and 1",
            gguf_path(r->keys.file), r->keys.prefix, suffix, base_float_text(&shown, h->eps));
    return status;
}

enum status model_key_positive(const struct model_keys *keys, const char *suffix, float *value,
                               struct status_why *why)
{
    float read = 0;
    struct base_number shown;
    enum status status = model_key_f32(keys, suffix, &read, why);
    if (status || read == 0)
        return status;
    if (read < 0)
        return status_fail(why, STATUS_FORMAT, "%s: key '%s.%s' is %s, expected 0 or more",
                           gguf_path(keys->file), keys->prefix, suffix,
                           base_float_text(&shown, read));
    *value = read;
    return STATUS_OK;
}

/** "attention.causal" must not say no. */
static enum status check_causal(const struct model_reading *r, struct status_why *why)
{
    bool causal = true;
    enum status status = model_key_bool(&r->keys, "attention.causal", &causal, why);
    if (status || causal)
        return status;
    return status_fail(why, STATUS_UNSUPPORTED,
                       "%s: key '%s.attention.causal' is false, supported is true",
                       gguf_path(r->keys.file), r->keys.prefix);
}

enum status model_hparams_read(struct model_hparams *h, struct model_reading *r,
                               struct status_why *why)
{
    memcpy(h->architecture, r->keys.prefix, strlen(r->keys.prefix) + 1);
    model_hparams_default(h);
    for (const char *const *key = r->arch->key_blind; *key; key++)
        (void)model_key_find(&r->keys, *key);
    (void)model_key_find(&r->keys, "tensor_data_layout");
    h->parallel = r->arch->parallel;
    h->no_output_bias = r->arch->no_output_bias && r->options->llama_compat;
    enum status status = read_name(h, r->keys.file, why);
    if (!status)
        status = check_causal(r, why);
    if (!status)
        status = read_sizes(h, r, why);
    if (!status)
        status = model_heads_read(h, r, why);
    if (!status)
        status = model_experts_read(h, r, why);
    if (!status)
        status = read_eps(h, r, why);
    if (!status)
        status = model_windows_read(h, r, why);
    if (!status)
        status = model_ropes_read(h, r, why);
    if (!status)
        status = model_hparams_read_keys(h, r, r->arch->reads, why);
    if (!status && r->arch->read)
        status = r->arch->read(h, r, why);
    if (!status)
        status = model_needs_check(h, r, why);
    for (uint32_t i = 0; !status && i < h->n_layers && !r->arch->experts_beside_dense; i++)
        if (h->layers[i].n_experts > 0)
            h->layers[i].n_ff = 0;
    h->n_layers -= h->n_bound;
    return status;
}

enum status model_temperature_read(struct model_hparams *h, const struct model_reading *r,
                                   struct status_why *why)
{
    struct model_temperature *t = &h->temperature;
    enum status status =
        model_key_positive(&r->keys, "attention.temperature_scale", &t->scale, why);
    if (!status)
        status = model_key_u32_or(&r->keys, "attention.temperature_length", model_positions_range,
                                  h->ropes[MODEL_ROPE_FULL].original_ctx, &t->length, why);
    for (uint32_t i = 0; i < h->n_layers; i++)
        h->layers[i].tempered = t->scale > 0;
    return status;
}

void model_hparams_free(struct model_hparams *h)
{
    free(h->layers);
    *h = (struct model_hparams){0};
}
