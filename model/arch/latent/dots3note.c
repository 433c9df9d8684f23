/**
 * dots3 note: latent attention of two sizes, of layers that slide and of those whose queries see
 * the keys that an indexer chooses; a norm of the keys' rotated part, and a gate for each head.
 */
#include <string.h>

#include "model/arch.h"
#include "model/arch/latent/latent.h"
#include "model/folder/state.h"

/** Layers that see all keys have an indexer, and no others. */
static void read_indexer(struct model_hparams *h, const struct model_reading *r)
{
    static const char suffix[] = "attention.indexer.types";
    bool own[MODEL_MAX_BLOCKS];
    model_indexer_read(h, r);
    h->index.eps = 1e-6f; /* no key has it */
    h->index.halves = r->options->llama_compat;
    for (uint32_t i = 0; i < h->n_layers; i++)
        own[i] = h->layers[i].sparse = !h->layers[i].slides;
    model_key_bools(&r->keys, suffix, own, h->n_layers);
    for (uint32_t i = 0; i < h->n_layers; i++)
        if (own[i] != h->layers[i].sparse)
            model_key_fail(&r->keys, STATUS_FORMAT, suffix,
                           "says that layer %u has %s indexer, expected one of the layers that do "
                           "not slide, and of no others",
                           i, own[i] ? "an" : "no");
    if (r->options->llama_compat)
        model_remark(r->remarks, "the indexer rotates elements that are half of what is rotated "
                                 "apart, as llama.cpp does");
}

static void read(struct model_hparams *h, const struct model_reading *r)
{
    model_latent_read(h, r);
    model_latent_read_sliding(h, r);
    read_indexer(h, r);
}

static const struct model_folder_name folder_names[] = {
    {"self_attn.k_rope_only_layernorm", "attn_k_norm"},
    {"self_attn.g_proj", "attn_gate"},
    {0},
};

/** What config.json says of layers that slide, or the class, of which no member has it. */
enum { SLIDING_HEADS = 64, SLIDING_PLAIN = 192, SLIDING_VALUE = 128, SLIDING_RANK = 1024 };

static bool slides(const struct model_folder *f, uint32_t i)
{
    return model_config_is(f, "layer_types", i, "sliding_attention");
}

static void heads(const struct model_folder *f, struct model_folder_heads *of)
{
    uint32_t n_heads = model_config_u32_or(f, "swa_num_attention_heads", SLIDING_HEADS);
    uint32_t plain = model_config_u32_or(f, "swa_qk_nope_head_dim", SLIDING_PLAIN);
    for (uint32_t i = 0; i < of->n; i++)
        if (slides(f, i)) {
            of->n_heads[i] = n_heads;
            of->plain[i] = plain;
        }
}

/** Refuse what GGUF cannot say. */
static void check(const struct model_folder *f)
{
    static const char *const same[][2] = {
        {"swa_qk_rope_head_dim", "qk_rope_head_dim"},
        {"swa_q_lora_rank", "q_lora_rank"},
        {"moe_shared_expert_intermediate_size shared_experts_intermediate_size",
         "moe_intermediate_size"}};
    static const char *const gates[] = {"attention_gate_type", "swa_attention_gate_type"};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        uint32_t full = model_config_u32(f, same[i][1]);
        uint32_t other = model_config_u32_or(f, same[i][0], full);
        if (other != full)
            model_config_fail(f, STATUS_UNSUPPORTED, "member '%.*s' is %u, expected the %u of '%s'",
                              (int)strcspn(same[i][0], " "), same[i][0], other, full, same[i][1]);
    }
    for (size_t i = 0; i < sizeof gates / sizeof *gates; i++)
        if (model_config_find(f, gates[i]).json &&
            !base_field_is(model_config_find(f, gates[i]), "headwise"))
            model_config_fail(f, STATUS_UNSUPPORTED, "member '%s' is not headwise", gates[i]);
}

static void write_folder(struct model_folder *f)
{
    uint8_t own[MODEL_MAX_BLOCKS]; /* the heads were checked against as many layers */
    uint32_t plain = model_config_u32_or(f, "swa_qk_nope_head_dim", SLIDING_PLAIN);
    uint32_t rank = model_config_u32_or(f, "swa_kv_lora_rank", SLIDING_RANK);
    check(f);
    for (uint32_t i = 0; i < f->n_layers; i++)
        own[i] = !slides(f, i);
    model_write_bools(f, "attention.indexer.types", own, f->n_layers);
    model_write_u32(f, "attention.kv_lora_rank_swa", rank);
    model_write_u32(f, "attention.key_length_mla_swa", plain + f->n_rot);
    model_write_u32(f, "attention.value_length_mla_swa",
                    model_config_u32_or(f, "swa_v_head_dim", SLIDING_VALUE));
}

static const struct model_folder_map folder = {
    .classes = {"Dots3NoteForConditionalGeneration", "Dots3NoteForCausalLM",
                "Dots3NoteTextForCausalLM"},
    .names = {folder_names, model_latent_names, model_indexer_names},
    .compressed = true,
    .long_rows = true,
    .named_layers = true,
    .further = "model.mtp.embed_tokens.weight",
    .heads = heads,
    .write = write_folder,
};

static const struct model_arch_key keys[] = {
    {"attention.q_lora_rank", MODEL_REQUIRED, .least = 1},
    {"expert_gating_func", .unset = 2},
    {.from = "apply_mla_qkv_lora_rescale", .unset = 1, .member = MODEL_MEMBER_FIXED},
    {.from = "k_rope_only_layernorm", .unset = 1, .member = MODEL_MEMBER_FIXED},
    {.from = "use_dsa", .unset = 1, .member = MODEL_MEMBER_FIXED},
    {0},
};

const struct model_arch model_arch_dots3note = {
    .name = "dots3note",
    .folder = &folder,
    .keys = {keys, model_indexer_keys, model_grouped_keys},
    .sliding_rope = true,
    .rot_norm = true,
    .attn_gate = true,
    .gate_kind = KERN_SIGMOID,
    .windows = {.period = 4, .by_array = true},
    .needs = {{"attention.key_length_mla"},
              {"attention.sliding_window"},
              {"attention.sliding_window_pattern"},
              {"attention.indexer.types"},
              {"expert_gating_func", MODEL_WHEN_EXPERTS},
              {"rope.freq_base_swa"}},
    .needs_shares = true,
    .gating = KERN_GATE_SIGMOID,
    .normalise = MODEL_NORMALISE_BY_KEY,
    .shared = MODEL_SHARED_PLAIN,
    .key_blind = {"attention.key_length_swa", "attention.value_length_swa"},
    .nodes = (const struct model_node[]){{MODEL_AT_ATTENTION, "attn_out"},
                                         {MODEL_AT_ATTN_GATE, "attn_gate", "MUL_MAT"},
                                         {MODEL_AT_ATTN_OUT, "attn_output", "MUL_MAT"},
                                         {0}},
    .read = read,
    .presence = {{MODEL_ALWAYS, "output.weight"}},
};
