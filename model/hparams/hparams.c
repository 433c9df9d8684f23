#include <stdlib.h>
#include <string.h>

#include "base/text/number.h"
#include "model/arch.h"
#include "model/hparams/rope.h"

/** general.name, cut to what fits and without control characters. */
static void read_name(struct model_hparams *h, const struct model_reading *r)
{
    struct base_string text = {0};
    struct status_kept *kept = r->keys.kept;
    if (!kept->status)
        kept->status =
            gguf_get_string(r->keys.file, "general.name", &text, &(bool){false}, &kept->why);
    size_t n = text.n_bytes < sizeof h->name - 1 ? text.n_bytes : sizeof h->name - 1;
    for (size_t i = 0; i < n; i++)
        h->name[i] = (unsigned char)text.data[i] < ' ' ? ' ' : text.data[i];
    h->name[n] = '\0';
}

static void read_sizes(struct model_hparams *h, struct model_reading *r)
{
    model_hparams_read_keys(h, r, model_size_keys);
    r->n_blocks = h->n_layers;
}

static void make_layers(struct model_hparams *h, const struct model_reading *r)
{
    h->layers = calloc(r->n_blocks, sizeof *h->layers);
    if (!h->layers)
        status_keep(r->keys.kept, STATUS_MEMORY, "no memory for %u layers", r->n_blocks);
    for (uint32_t i = 0; h->layers && i < r->n_blocks; i++) {
        h->layers[i].kv_layer = i;
        h->layers[i].kept = -1;
        h->layers[i].activation.kind = h->layers[i].expert_activation.kind = r->arch->activation;
    }
}

static void read_eps(struct model_hparams *h, const struct model_reading *r)
{
    static const char rms[] = "attention.layer_norm_rms_epsilon";
    bool given = r->arch->rms_by_key && model_key_f32(&r->keys, rms, 0) != 0;
    h->layer_norm = r->arch->layer_norm && !given;
    static const char plain[] = "attention.layer_norm_epsilon";
    h->norm_bias = h->layer_norm;
    bool either = r->arch->rms_by_either && !model_key_find(&r->keys, rms);
    const char *suffix = (h->layer_norm && !r->arch->rms_eps) || either ? plain : rms;
    model_key_require(&r->keys, suffix, "a float");
    h->eps = model_key_f32(&r->keys, suffix, h->eps);
    struct base_number shown;
    if (!(h->eps > 0 && h->eps < 1))
        model_key_fail(&r->keys, STATUS_FORMAT, suffix, "is %s, expected a number between 0 and 1",
                       base_float_text(&shown, h->eps));
}

/** "attention.causal" must not say no. */
static void check_causal(const struct model_reading *r)
{
    if (!model_key_bool(&r->keys, "attention.causal", true))
        model_key_fail(&r->keys, STATUS_UNSUPPORTED, "attention.causal",
                       "is false, supported is true");
}

/** What only the architecture has: its lists, then its function. */
static void read_own(struct model_hparams *h, const struct model_reading *r)
{
    for (const struct model_arch_key *const *list = r->arch->keys; *list; list++)
        model_hparams_read_keys(h, r, *list);
    if (r->arch->read && !r->keys.kept->status)
        r->arch->read(h, r);
}

static void check_needs(struct model_hparams *h, const struct model_reading *r)
{
    model_needs_check(h, r);
    for (uint32_t i = 0; i < h->n_layers && !r->arch->experts_beside_dense; i++)
        if (h->layers[i].n_experts > 0)
            h->layers[i].n_ff = 0;
}

/** Each wants those before it, and that they did not fail. */
static void (*const parts[])(struct model_hparams *h, const struct model_reading *r) = {
    model_nextn_read,   make_layers,      model_heads_read, model_experts_read, read_eps,
    model_windows_read, model_ropes_read, read_own,         check_needs,
};

void model_hparams_read(struct model_hparams *h, struct model_reading *r)
{
    memcpy(h->architecture, r->keys.prefix, strlen(r->keys.prefix) + 1);
    model_hparams_default(h);
    for (const char *const *key = r->arch->key_blind; *key; key++)
        (void)model_key_find(&r->keys, *key);
    (void)model_key_find(&r->keys, "tensor_data_layout");
    h->parallel = r->arch->parallel;
    h->no_output_bias = r->arch->no_output_bias && r->options->llama_compat;
    read_name(h, r);
    check_causal(r);
    read_sizes(h, r);
    for (size_t i = 0; i < sizeof parts / sizeof *parts && !r->keys.kept->status; i++)
        parts[i](h, r);
    h->n_layers -= h->n_bound;
}

void model_temperature_read(struct model_hparams *h, const struct model_reading *r)
{
    struct model_temperature *t = &h->temperature;
    t->scale = model_key_positive(&r->keys, "attention.temperature_scale", t->scale);
    t->length = model_key_u32_or(&r->keys, "attention.temperature_length", model_positions_range,
                                 h->ropes[MODEL_ROPE_FULL].original_ctx);
    for (uint32_t i = 0; i < h->n_layers; i++)
        h->layers[i].tempered = t->scale > 0;
}

void model_hparams_free(struct model_hparams *h)
{
    free(h->layers);
    *h = (struct model_hparams){0};
}
