/* The mixture of experts: how many, how wide, how they are chosen, and which layers have them. */
#include <stdio.h>

#include "base/text/number.h"
#include "model/arch.h"

/**
 * The gating where older files do not say it: the first ones of GLM 4.7 Flash have biases in the
 * selection, those of DeepSeek V2 have none. llama.cpp tells them by their sizes.
 */
static void guess_gating(struct model_expert_hparams *e, const struct model_reading *r)
{
    enum { GLM_BLOCKS = 47, GLM_TOKENS = 154880 };
    char name[64];
    bool biased = false;
    for (uint32_t i = 0; i < r->n_blocks; i++) {
        snprintf(name, sizeof name, "blk.%u.exp_probs_b.bias", i);
        biased |= gguf_tensor_find(r->keys.file, name) != NULL;
    }
    if (!biased)
        return;
    const struct gguf_kv *tokens = gguf_kv_find(r->keys.file, "tokenizer.ggml.tokens");
    bool glm = (r->n_blocks == GLM_BLOCKS || r->n_blocks == GLM_BLOCKS + 1) && tokens &&
               tokens->count == GLM_TOKENS;
    bool softmax = r->options->llama_compat && !glm;
    e->gating = softmax ? KERN_GATE_SOFTMAX : KERN_GATE_SIGMOID;
    if (!glm)
        model_remark(r->remarks, "key %s.expert_gating_func is missing: %s", r->keys.prefix,
                     softmax ? "shares are a softmax, as in llama.cpp"
                             : "shares are sigmoids, as the selection has biases; "
                               "llama.cpp takes a softmax");
}

/** How the router's logits become shares. */
static void read_gating(struct model_expert_hparams *e, const struct model_reading *r)
{
    static const enum kern_gating by_number[] = {KERN_GATE_SOFTMAX, KERN_GATE_SOFTMAX,
                                                 KERN_GATE_SIGMOID, KERN_GATE_SOFTMAX_CHOSEN,
                                                 KERN_GATE_SQRT_SOFTPLUS};
    uint32_t gating =
        model_key_u32_or(&r->keys, "expert_gating_func", (struct model_range){0, 4}, 0);
    e->gating = gating ? by_number[gating] : r->arch->gating;
    if (gating == 0 && r->arch->sigmoid_if_biased)
        guess_gating(e, r);
    enum model_normalise form = r->arch->normalise;
    e->normalise = form == MODEL_NORMALISE_YES || form == MODEL_NORMALISE_SCALED;
    if (form == MODEL_NORMALISE_BY_KEY)
        e->normalise = model_key_bool(&r->keys, "expert_weights_norm", false);
    e->scale = 1;
    if (form == MODEL_NORMALISE_BY_KEY || form == MODEL_NORMALISE_SCALED)
        e->scale = model_key_positive(&r->keys, "expert_weights_scale", 1);
}

/** Groups of experts of which the best few stay. */
static void read_groups(struct model_expert_hparams *e, const struct model_reading *r)
{
    e->n_groups_used = 1;
    e->n_groups =
        model_key_u32_or(&r->keys, "expert_group_count", (struct model_range){0, e->n}, 1);
    if (e->n_groups <= 1) {
        (void)model_key_find(&r->keys, "expert_group_used_count");
        return;
    }
    if (e->n % e->n_groups != 0)
        model_key_fail(&r->keys, STATUS_FORMAT, "expert_group_count",
                       "is %u, expected a divisor of the %u experts", e->n_groups, e->n);
    e->n_groups_used =
        model_key_u32(&r->keys, "expert_group_used_count", (struct model_range){1, e->n_groups});
    if (e->n_groups_used * (e->n / e->n_groups) < e->n_used)
        model_keys_fail(&r->keys, STATUS_FORMAT,
                        "%u of %u groups hold %u experts (key '%s.expert_group_used_count'), "
                        "expected the %u that are used, or more",
                        e->n_groups_used, e->n_groups, e->n_groups_used * (e->n / e->n_groups),
                        r->keys.prefix, e->n_used);
}

/** F of the experts, where no key of their own has said it: from a dense feed-forward's. */
static void derive_widths(struct model_hparams *h, const struct model_reading *r)
{
    uint32_t n_used = h->experts.n_used;
    for (uint32_t i = 0; i < r->n_blocks; i++) {
        struct model_layer_shape *l = &h->layers[i];
        if (l->n_ff_expert == 0)
            l->n_ff_expert = r->arch->split_ff && n_used > 0 ? l->n_ff / n_used : l->n_ff;
        if (l->n_ff > 0 && l->n_ff_expert == 0)
            model_key_fail(&r->keys, STATUS_FORMAT, "feed_forward_length",
                           "is %u, expected at least the %u experts of a token, or key "
                           "'%s.expert_feed_forward_length'",
                           l->n_ff, n_used, r->keys.prefix);
    }
}

/** F of the expert that all tokens go through: a key, or so many times an expert's. */
static void read_shared(struct model_hparams *h, const struct model_reading *r)
{
    if (r->arch->shared == MODEL_SHARED_NONE)
        return;
    struct model_range any = {0, model_ff_range.high};
    uint32_t n_shared =
        model_key_u32_or(&r->keys, "expert_shared_count", (struct model_range){0, 1024}, 0);
    const struct model_layer_shape *last = &h->layers[h->n_layers - 1]; /* that has a width */
    while (last->n_ff_expert == 0 && last > h->layers)
        last--;
    uint64_t width = (uint64_t)n_shared * last->n_ff_expert;
    if (width > model_ff_range.high)
        model_key_fail(&r->keys, STATUS_FORMAT, "expert_shared_count",
                       "is %u, expected at most %u with experts of width %u", n_shared,
                       model_ff_range.high / last->n_ff_expert, last->n_ff_expert);
    if (n_shared == 0 && r->arch->shared == MODEL_SHARED_GATED)
        width = last->n_ff;
    h->experts.n_ff_shared =
        model_key_u32_or(&r->keys, "expert_shared_feed_forward_length", any, (uint32_t)width);
}

/** Columns of "blk.<i>.<name>.weight", a width within a feed-forward; 0: there is no such tensor.
 */
static uint32_t stored_width(const struct model_reading *r, uint32_t i, const char *name)
{
    char whole[64];
    snprintf(whole, sizeof whole, "blk.%u.%s.weight", i, name);
    const struct gguf_tensor *t = gguf_tensor_find(r->keys.file, whole);
    return t && t->ne[0] <= model_ff_range.high ? (uint32_t)t->ne[0] : 0;
}

/** Which layers have experts, by the tensors that are there; and their widths, if no key has them.
 */
static void read_tensors(struct model_hparams *h, const struct model_reading *r)
{
    bool by_key = model_key_find(&r->keys, "expert_feed_forward_length");
    for (uint32_t i = 0; i < h->n_layers; i++) {
        struct model_layer_shape *l = &h->layers[i];
        uint32_t width = stored_width(r, i, "ffn_down_exps");
        l->n_experts = width > 0 || stored_width(r, i, "ffn_gate_inp") > 0 ? h->experts.n : 0;
        if (width > 0 && !by_key)
            l->n_ff_expert = width;
        if (stored_width(r, i, "ffn_down_shexp") > 0)
            h->experts.n_ff_shared = stored_width(r, i, "ffn_down_shexp");
    }
}

/** How many experts a token goes through; where layers may lack experts, an array says it of each.
 */
static void read_used(struct model_hparams *h, const struct model_reading *r)
{
    static const char suffix[] = "expert_used_count";
    struct model_expert_hparams *e = &h->experts;
    const struct gguf_kv *kv = model_key_find(&r->keys, suffix);
    bool listed = r->arch->mixed && kv && kv->type == GGUF_VALUE_ARRAY;
    struct model_range range = {e->n && !listed ? 1 : 0, e->n};
    uint32_t used[MODEL_MAX_BLOCKS] = {0};
    if (e->n)
        model_key_require(&r->keys, suffix, "a whole number");
    if (listed)
        model_key_per_layer(&r->keys, suffix, range, used, r->n_blocks);
    else
        used[0] = model_key_u32_or(&r->keys, suffix, range, 0);
    for (uint32_t i = 0; i < r->n_blocks; i++) {
        h->layers[i].n_experts_used = used[listed ? i : 0];
        e->n_used = used[i] > e->n_used ? used[i] : e->n_used;
    }
}

/** No layer's experts are all left out. */
static void check_used(const struct model_hparams *h, const struct model_reading *r)
{
    for (uint32_t i = 0; i < h->n_layers; i++)
        if (h->layers[i].n_experts > 0 && h->layers[i].n_experts_used == 0)
            model_key_fail(&r->keys, STATUS_FORMAT, "expert_used_count",
                           "has 0 for layer %u, which has experts, expected 1 to %u", i,
                           h->experts.n);
}

/** The caller's number of experts of a token takes the place of the file's. Widths are the file's.
 */
static void choose_used(struct model_hparams *h, const struct model_reading *r)
{
    struct model_expert_hparams *e = &h->experts;
    uint32_t n_used = r->options->n_experts_used;
    if (!n_used)
        return;
    if (n_used > e->n)
        model_keys_fail(
            &r->keys, STATUS_USAGE,
            "%u experts of a token (--experts-used), expected 1 to the %u that there are", n_used,
            e->n);
    for (uint32_t i = 0; i < r->n_blocks; i++) {
        if (h->layers[i].n_experts_used == 0)
            continue;
        e->n_used_chosen |= n_used != h->layers[i].n_experts_used;
        h->layers[i].n_experts_used = n_used;
    }
    e->n_used = n_used;
}

void model_experts_read(struct model_hparams *h, const struct model_reading *r)
{
    struct model_expert_hparams *e = &h->experts;
    static const struct model_arch_key count[] = {{"expert_count", MODEL_OPTIONAL}, {0}};
    model_hparams_read_keys(h, r, count);
    read_used(h, r);
    if (r->keys.kept->status)
        return;
    if (e->n == 0 && r->options->n_experts_used)
        model_keys_fail(&r->keys, STATUS_USAGE,
                        "has no experts, expected a mixture where --experts-used says how many a "
                        "token goes through");
    if (e->n == 0)
        return;
    derive_widths(h, r);
    choose_used(h, r);
    read_shared(h, r);
    read_gating(e, r);
    read_groups(e, r);
    uint32_t n_dense = model_key_u32_or(&r->keys, "leading_dense_block_count",
                                        (struct model_range){0, r->n_blocks}, 0);
    for (uint32_t i = n_dense; i < h->n_layers && !r->arch->experts_by_tensors; i++)
        h->layers[i].n_experts = h->layers[i].n_ff > 0 ? e->n : 0;
    if (r->arch->experts_by_tensors)
        read_tensors(h, r);
    check_used(h, r);
}

void model_limits_read(const struct model_reading *r, const char *suffix, float *limits)
{
    struct base_number shown;
    model_key_floats(&r->keys, suffix, limits, r->n_blocks);
    for (uint32_t i = 0; i < r->n_blocks; i++)
        if (limits[i] < 0)
            model_key_fail(&r->keys, STATUS_FORMAT, suffix,
                           "has %s for layer %u, expected 0 or more",
                           base_float_text(&shown, limits[i]), i);
}

struct model_activation model_limited(enum kern_activation kind, float limit)
{
    return (struct model_activation){.kind = limit > 0 ? kind : KERN_SILU,
                                     .curve = {.clamp = limit}};
}

void model_expert_clamps_read(struct model_hparams *h, const struct model_reading *r,
                              enum kern_activation kind, float least)
{
    float limits[MODEL_MAX_BLOCKS] = {0};
    model_limits_read(r, "swiglu_clamp_exp", limits);
    for (uint32_t i = 0; i < h->n_layers; i++)
        h->layers[i].expert_activation = model_limited(kind, limits[i] > least ? limits[i] : 0);
}

void model_clamps_read(struct model_hparams *h, const struct model_reading *r,
                       enum kern_activation kind, float least)
{
    float limits[MODEL_MAX_BLOCKS] = {0};
    model_expert_clamps_read(h, r, kind, least);
    model_limits_read(r, "swiglu_clamp_shexp", limits);
    for (uint32_t i = 0; i < h->n_layers; i++)
        h->layers[i].activation = model_limited(kind, limits[i] > least ? limits[i] : 0);
}
