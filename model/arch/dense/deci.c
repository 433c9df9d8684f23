/**
 * Nemotron 49B, 51B and 253B, and DeciLM: LLaMAs from which a search has taken heads, whole
 * attentions and feed-forwards, or left a matrix in an attention's place.
 */
#include "model/arch.h"
#include "model/bind/bind.h"
#include "model/folder/state.h"
#include "model/state.h"

/** llama.cpp leaves such a layer out. */
static bool lacks_only_ffn(const struct model_layer_shape *l)
{
    return l->n_heads > 0 && l->n_ff == 0;
}

static void read(struct model_hparams *h, const struct model_reading *r)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < h->n_layers; i++) {
        if (!lacks_only_ffn(&h->layers[i]))
            continue;
        n++;
        if (r->options->llama_compat)
            h->layers[i].mixer = MODEL_NO_MIXER;
    }
    if (n > 0)
        model_remark(r->remarks,
                     r->options->llama_compat
                         ? "attention, or the matrix in its place, of %u layer%s without a "
                           "feed-forward is left out, as in llama.cpp"
                         : "attention, or the matrix in its place, of %u layer%s without a "
                           "feed-forward is evaluated; llama.cpp leaves it out",
                     n, status_plural(n));
}

static void bind(struct model *m, size_t i)
{
    static const char *const names[] = {"attn_norm", "attn_qkv", "attn_q",
                                        "attn_k",    "attn_v",   "attn_output"};
    if (i == MODEL_NO_LAYER || m->hparams.layers[i].mixer != MODEL_NO_MIXER ||
        !lacks_only_ffn(&m->hparams.layers[i]))
        return;
    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        model_bind_unused(m, i, names[n]);
}

static const struct model_folder_name names[] = {
    {"self_attn.linear_attn", "attn_output"},
    {0},
};

/** What a part of a block is not to be. */
static void refuse(struct base_field part, const char *const *members)
{
    for (; *members; members++) {
        struct base_field item = base_field_find(part, *members);
        if (item.json && !cJSON_IsFalse(item.json))
            base_field_fail(item, STATUS_UNSUPPORTED, "is set, expected null or false");
    }
}

/** The width of a block's feed-forward: a factor, rounded up to whole 256. */
static uint32_t width_of(const struct model_folder *f, struct base_field ffn)
{
    static const char *const others[] = {"replace_with_linear", "sparsify", "moe", NULL};
    enum { WHOLE = 256, MOST = 1 << 24 };
    refuse(ffn, others);
    double mult = base_field_real_or(ffn, "ffn_mult", 0), width = 2 * mult * f->n_embd / 3;
    if (base_field_flag_or(ffn, "no_op", false))
        return 0;
    if (!(width >= 0 && width < MOST)) {
        base_field_fail_member(ffn, "ffn_mult", STATUS_FORMAT, "is %g, expected a factor of width",
                               mult);
        return 0;
    }
    return ((uint32_t)width + WHOLE - 1) / WHOLE * WHOLE;
}

static struct base_field blocks_of(const struct model_folder *f)
{
    struct base_field blocks = model_config_find(f, "block_configs");
    if (blocks.json && base_field_count(blocks) != f->n_layers)
        base_field_fail(blocks, STATUS_FORMAT, "has %zu blocks, expected %u",
                        base_field_count(blocks), f->n_layers);
    return blocks;
}

static void sizes(struct model_folder *f)
{
    struct base_field blocks = blocks_of(f), block = {0};
    f->ff_by_layer = blocks.json != NULL;
    for (uint32_t i = 0; !f->json.status && base_field_next(blocks, &block); i++)
        f->n_ff_of[i] = width_of(f, base_field_object(block, "ffn"));
}

static void heads(const struct model_folder *f, struct model_folder_heads *of)
{
    static const char *const others[] = {"sparsify", "window_length", "num_sink_tokens",
                                         "is_mamba", "mamba",         NULL};
    static const char each[] = "num_key_value_heads_per_layer";
    struct base_field blocks = model_config_find(f, "block_configs"), block = {0};
    if (model_config_find(f, each).json) /* DeciLM 7B */
        model_config_u32s(model_config_find(f, each), "", of->n_kv_heads, of->n);
    for (uint32_t i = 0; i < of->n && base_field_next(blocks, &block); i++) {
        struct base_field attention = base_field_object(block, "attention");
        uint32_t n = (uint32_t)base_field_uint_or(attention, "n_heads_in_group", UINT16_MAX, 0);
        refuse(attention, others);
        of->n_kv_heads[i] = n > 0 ? f->n_heads / n : 0;
        if (n == 0 && !base_field_flag_or(attention, "replace_with_linear", false))
            of->n_heads[i] = 0;
    }
}

static const struct model_folder_map folder = {
    .classes = {"DeciLMForCausalLM"},
    .names = {names},
    .turned = true,
    .sizes = sizes,
    .heads = heads,
};

static const struct model_node nodes[] = {
    {MODEL_AT_ATTN_OUT, "wo", "MUL_MAT"},
    {0},
};

const struct model_arch model_arch_deci = {
    .name = "deci",
    .folder = &folder,
    .nodes = nodes,
    .partial = true,
    .without_keys = MODEL_MATRIX,
    .read = read,
    .bind = bind,
};
