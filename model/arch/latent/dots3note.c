/**
 * dots3 note: latent attention of two sizes, of layers that slide and of those whose queries see
 * the keys that an indexer chooses; a norm of the keys' rotated part, and a gate for each head.
 */
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

static const struct model_arch_key keys[] = {
    {"attention.q_lora_rank", MODEL_REQUIRED, .least = 1},
    {"attention.indexer.head_count"},
    {"attention.indexer.key_length"},
    {"attention.indexer.top_k"},
    {0},
};

const struct model_arch model_arch_dots3note = {
    .name = "dots3note",
    .keys = {keys, model_grouped_keys},
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
