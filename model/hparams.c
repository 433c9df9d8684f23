#include "model/hparams.h"

#include <stdlib.h>
#include <string.h>

#include "base/text/number.h"
#include "model/rope.h"

/**
 * Far above any model that exists, and low enough that the product of three of them and the
 * size of a float fits 64 bits.
 */
static const struct model_range layers_range = {1, 1024};
static const struct model_range width_range = {1, 1u << 20};
static const struct model_range ff_range = {1, 1u << 24};
static const struct model_range heads_range = {1, 1u << 16};
static const struct model_range head_size_range = {2, 1u << 16};
static const struct model_range experts_range = {0, 1024};
static const struct model_range positions_range = {1, INT32_MAX};

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

static enum status read_sizes(struct model_hparams *h, const struct model_keys *keys,
                              struct status_why *why)
{
    enum status status = model_key_u32(keys, "block_count", layers_range, &h->n_layers, NULL, why);
    if (!status)
        status = model_key_u32(keys, "embedding_length", width_range, &h->n_embd, NULL, why);
    if (!status)
        status = model_key_u32(keys, "context_length", positions_range, &h->n_ctx_train, NULL, why);
    if (status)
        return status;
    h->n_ff = calloc(h->n_layers, sizeof *h->n_ff);
    h->n_heads = calloc(h->n_layers, sizeof *h->n_heads);
    h->n_kv_heads = calloc(h->n_layers, sizeof *h->n_kv_heads);
    if (!h->n_ff || !h->n_heads || !h->n_kv_heads)
        return status_fail(why, STATUS_MEMORY, "no memory for %u layers", h->n_layers);
    return model_key_per_layer(keys, "feed_forward_length", ff_range, h->n_ff, h->n_layers, NULL,
                               why);
}

/** d: attention.key_length, else the width divided by the first layer's heads. */
static enum status read_head_size(struct model_hparams *h, const struct model_keys *keys,
                                  struct status_why *why)
{
    bool found = false;
    enum status status =
        model_key_u32(keys, "attention.key_length", head_size_range, &h->head_size, &found, why);
    if (status)
        return status;
    if (!found) {
        h->head_size = h->n_embd / h->n_heads[0];
        if (h->n_embd % h->n_heads[0] != 0 || h->head_size < head_size_range.low)
            return status_fail(why, STATUS_FORMAT,
                               "%s: width %u (key '%s.embedding_length') does not divide into %u "
                               "heads of 2 or more, expected a multiple, or key "
                               "'%s.attention.key_length'",
                               gguf_path(keys->file), h->n_embd, keys->prefix, h->n_heads[0],
                               keys->prefix);
    }
    uint32_t value_length = h->head_size;
    status =
        model_key_u32(keys, "attention.value_length", head_size_range, &value_length, &found, why);
    if (!status && value_length != h->head_size)
        status = status_fail(why, STATUS_UNSUPPORTED,
                             "%s: key '%s.attention.value_length' is %u, supported is %u, the size "
                             "of the keys",
                             gguf_path(keys->file), keys->prefix, value_length, h->head_size);
    return status;
}

static enum status read_heads(struct model_hparams *h, const struct model_keys *keys,
                              struct status_why *why)
{
    enum status status = model_key_per_layer(keys, "attention.head_count", heads_range, h->n_heads,
                                             h->n_layers, NULL, why);
    if (status)
        return status;
    memcpy(h->n_kv_heads, h->n_heads, h->n_layers * sizeof *h->n_kv_heads);
    status = model_key_per_layer(keys, "attention.head_count_kv", heads_range, h->n_kv_heads,
                                 h->n_layers, &(bool){false}, why);
    if (status)
        return status;
    for (uint32_t i = 0; i < h->n_layers; i++)
        if (h->n_heads[i] % h->n_kv_heads[i] != 0)
            return status_fail(why, STATUS_FORMAT,
                               "%s: layer %u has %u key/value heads (key "
                               "'%s.attention.head_count_kv'), expected a divisor of its %u heads",
                               gguf_path(keys->file), i, h->n_kv_heads[i], keys->prefix,
                               h->n_heads[i]);
    return read_head_size(h, keys, why);
}

static enum status read_experts(struct model_hparams *h, const struct model_keys *keys,
                                struct status_why *why)
{
    bool found = false;
    enum status status =
        model_key_u32(keys, "expert_count", experts_range, &h->n_experts, &found, why);
    if (status)
        return status;
    struct model_range used = {h->n_experts ? 1 : 0, h->n_experts};
    return model_key_u32(keys, "expert_used_count", used, &h->n_experts_used,
                         h->n_experts ? NULL : &found, why);
}

static enum status read_window(struct model_hparams *h, const struct model_keys *keys,
                               const struct model_options *options, struct model_remarks *remarks,
                               struct status_why *why)
{
    struct model_range range = {0, INT32_MAX};
    enum status status = model_key_u32(keys, "attention.sliding_window", range, &h->sliding_window,
                                       &(bool){false}, why);
    if (status || h->sliding_window == 0)
        return status;
    if (options->ignore_sliding_window) {
        status = model_remark(remarks, why,
                              "%s.attention.sliding_window (%u) is ignored, as llama.cpp does",
                              keys->prefix, h->sliding_window);
        h->sliding_window = 0;
        return status;
    }
    return model_remark(remarks, why,
                        "attention sees a sliding window of %u tokens "
                        "(%s.attention.sliding_window; llama.cpp ignores it)",
                        h->sliding_window, keys->prefix);
}

static enum status read_eps(struct model_hparams *h, const struct model_keys *keys,
                            struct status_why *why)
{
    bool found = false;
    enum status status =
        model_key_f32(keys, "attention.layer_norm_rms_epsilon", &h->rms_eps, &found, why);
    if (status)
        return status;
    const char *path = gguf_path(keys->file);
    struct base_number shown;
    if (!found)
        return status_fail(why, STATUS_FORMAT,
                           "%s: key '%s.attention.layer_norm_rms_epsilon' is missing, expected a "
                           "float",
                           path, keys->prefix);
    if (!(h->rms_eps > 0 && h->rms_eps < 1))
        return status_fail(why, STATUS_FORMAT,
                           "%s: key '%s.attention.layer_norm_rms_epsilon' is %s, expected a number "
                           "between 0 and 1",
                           path, keys->prefix, base_float_text(&shown, h->rms_eps));
    return STATUS_OK;
}

enum status model_hparams_read(struct model_hparams *h, const struct model_keys *keys,
                               const struct model_options *options, struct model_remarks *remarks,
                               struct status_why *why)
{
    memcpy(h->architecture, keys->prefix, strlen(keys->prefix) + 1);
    enum status status = read_name(h, keys->file, why);
    if (!status)
        status = read_sizes(h, keys, why);
    if (!status)
        status = read_heads(h, keys, why);
    if (!status)
        status = read_experts(h, keys, why);
    if (!status)
        status = read_eps(h, keys, why);
    if (!status)
        status = read_window(h, keys, options, remarks, why);
    if (!status)
        status = model_rope_read(h, keys, options, why);
    return status;
}

void model_hparams_free(struct model_hparams *h)
{
    free(h->n_ff);
    free(h->n_heads);
    free(h->n_kv_heads);
    *h = (struct model_hparams){0};
}
