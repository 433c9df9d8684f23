/* Heads of attention, and the width of the dense feed-forward, layer by layer. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "model/arch.h"

/** Numbers per block into a member of each layer's shape, which has the default. none: 0 is one. */
static void read_each(struct model_hparams *h, const struct model_reading *r, const char *suffix,
                      bool none)
{
    size_t field = model_hparam_row(suffix)->at;
    struct model_range range = model_hparam_row(suffix)->range;
    range.low = none ? 0 : range.low;
    uint32_t *values = calloc(r->n_blocks, sizeof *values);
    if (!values) {
        status_keep(r->keys.kept, STATUS_MEMORY, "no memory for %u layers", r->n_blocks);
        return;
    }
    for (uint32_t i = 0; i < r->n_blocks; i++)
        values[i] = *(uint32_t *)((char *)&h->layers[i] + field);
    model_key_per_layer(&r->keys, suffix, range, values, r->n_blocks);
    for (uint32_t i = 0; i < r->n_blocks; i++)
        *(uint32_t *)((char *)&h->layers[i] + field) = values[i];
    free(values);
}

static void check_heads(const struct model_hparams *h, const struct model_reading *r)
{
    for (uint32_t i = 0; i < h->n_layers; i++) {
        const struct model_layer_shape *l = &h->layers[i];
        if (l->n_kv_heads > 0 && (l->n_heads == 0 || l->n_heads % l->n_kv_heads != 0))
            model_keys_fail(
                &r->keys, STATUS_FORMAT,
                "layer %u has %u key/value heads (key '%s.attention.head_count_kv'), expected a "
                "divisor of its %u heads",
                i, l->n_kv_heads, r->keys.prefix, l->n_heads);
    }
}

/** The heads of the first layer that has some. */
static uint32_t first_heads(const struct model_hparams *h, uint32_t n_blocks)
{
    uint32_t i = 0;
    while (i + 1 < n_blocks && h->layers[i].n_heads == 0)
        i++;
    return h->layers[i].n_heads;
}

/** The size of keys: attention.key_length, else the width divided by the first layer's heads. */
static void read_head_sizes(struct model_hparams *h, const struct model_reading *r)
{
    uint32_t key_size =
        model_key_u32_or(&r->keys, "attention.key_length", model_head_size_range, 0);
    uint32_t n_heads = first_heads(h, r->n_blocks);
    if (key_size == 0 && !r->keys.kept->status) {
        key_size = n_heads > 0 ? h->n_embd / n_heads : 0;
        if (key_size < model_head_size_range.low || h->n_embd % n_heads != 0)
            model_keys_fail(
                &r->keys, STATUS_FORMAT,
                "width %u (key '%s.embedding_length') does not divide into %u heads of 2 or more, "
                "expected a multiple, or key '%s.attention.key_length'",
                h->n_embd, r->keys.prefix, n_heads, r->keys.prefix);
    }
    uint32_t value_size =
        model_key_u32_or(&r->keys, "attention.value_length", model_head_size_range, key_size);
    if (r->arch->gated_attention && value_size != key_size) /* gates are as wide as queries */
        model_key_fail(&r->keys, STATUS_FORMAT, "attention.value_length",
                       "is %u, expected the %u of keys", value_size, key_size);
    for (uint32_t i = 0; i < r->n_blocks; i++) {
        h->layers[i].key_size = key_size;
        h->layers[i].value_size = value_size;
        h->layers[i].scale = (float)(1 / sqrt((double)key_size));
    }
}

void model_heads_read(struct model_hparams *h, const struct model_reading *r)
{
    model_key_require(&r->keys, "attention.head_count", "a whole number");
    bool partial = r->arch->partial;
    read_each(h, r, "attention.head_count", partial);
    for (uint32_t i = 0; i < r->n_blocks; i++)
        h->layers[i].n_kv_heads = h->layers[i].n_heads;
    read_each(h, r, "attention.head_count_kv", r->arch->mixed || r->arch->without_keys);
    for (uint32_t i = 0; i < r->n_blocks; i++)
        if (h->layers[i].n_heads == 0)
            h->layers[i].mixer = MODEL_NO_MIXER;
        else if (h->layers[i].n_kv_heads == 0)
            h->layers[i].mixer = r->arch->without_keys;
    check_heads(h, r);
    read_head_sizes(h, r);
    /* Where all layers have experts, files may leave out the width of a dense feed-forward. */
    bool any = false;
    if (model_key_find(&r->keys, "expert_count"))
        read_each(h, r, "expert_feed_forward_length", r->arch->mixed);
    for (uint32_t i = 0; i < r->n_blocks; i++) {
        h->layers[i].n_ff = h->layers[i].n_ff_expert;
        any |= h->layers[i].n_ff > 0;
    }
    if (!any)
        model_key_require(&r->keys, "feed_forward_length", "a whole number");
    read_each(h, r, "feed_forward_length", r->arch->mixed || partial);
}
