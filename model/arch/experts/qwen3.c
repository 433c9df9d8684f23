/**
 * Qwen 3, dense and with experts: norms of each head's queries and keys. And what its models with
 * pictures read of text.
 */
#include "model/arch.h"
#include "model/folder/state.h"

/** In text all axes of a position are equal; llama.cpp leaves pairs of a short section unturned. */
static void read_vl(struct model_hparams *h, const struct model_reading *r)
{
    uint32_t sections[4] = {0};
    model_key_per_layer(&r->keys, "rope.dimension_sections", (struct model_range){0, 1 << 15},
                        sections, 4);
    for (size_t i = 0; i < 3 && r->options->llama_compat; i++)
        h->ropes[MODEL_ROPE_FULL].sections[i] = sections[i];
}

/** Elements of a head for each axis of a position, and 0 for the fourth. */
static void write_sections(struct model_folder *f)
{
    uint32_t sections[4] = {0};
    model_config_u32s(model_config_rope(f), "mrope_section", sections, 3);
    model_write_u32s(f, "rope.dimension_sections", sections, 4);
}

static const struct model_folder_map vl_folder = {
    .classes = {"Qwen3VLForConditionalGeneration"},
    .write = write_sections,
};

/** Published experts lie transposed, those that transformers saves do not. */
static const struct model_folder_name vlmoe_names[] = {
    {"mlp.experts.gate_up_proj", "ffn_gate_exps.weight",
     MODEL_OF_COLUMNS | MODEL_FIRST_HALF | MODEL_TURN_OVER | MODEL_IF_WIDTH_BEFORE},
    {"mlp.experts.gate_up_proj", "ffn_up_exps.weight",
     MODEL_OF_COLUMNS | MODEL_SECOND_HALF | MODEL_TURN_OVER | MODEL_IF_WIDTH_BEFORE},
    {"mlp.experts.down_proj", "ffn_down_exps.weight", MODEL_TURN_OVER | MODEL_IF_WIDTH_LAST},
    {0},
};

static const struct model_arch_key vlmoe_keys[] = {
    {.from = "norm_topk_prob", .unset = 1, .member = MODEL_MEMBER_FIXED},
    {0},
};

static const struct model_folder_map vlmoe_folder = {
    .classes = {"Qwen3VLMoeForConditionalGeneration"},
    .names = {vlmoe_names},
    .write = write_sections,
};

#define VL                                                                                         \
    .rope_halves = true, .qk_norm = MODEL_QK_NORM_HEADS, .key_blind = {"n_deepstack_layers"},      \
    .needs = {{"rope.dimension_sections"}}, .read = read_vl

const struct model_arch model_arch_qwen3vl = {.name = "qwen3vl", .folder = &vl_folder, VL};

const struct model_arch model_arch_qwen3vlmoe = {
    .name = "qwen3vlmoe",
    .folder = &vlmoe_folder,
    .keys = {vlmoe_keys},
    .split_ff = true,
    VL,
};

static const struct model_folder_map folder = {.classes = {"Qwen3ForCausalLM"}};

const struct model_arch model_arch_qwen3 = {
    .name = "qwen3",
    .rope_halves = true,
    .qk_norm = MODEL_QK_NORM_HEADS,
    .folder = &folder,
};

static const struct model_arch_key moe_keys[] = {
    {.from = "norm_topk_prob", .member = MODEL_MEMBER_TRUE},
    {0},
};

static const struct model_folder_map moe_folder = {.classes = {"Qwen3MoeForCausalLM"}};

const struct model_arch model_arch_qwen3moe = {
    .name = "qwen3moe",
    .folder = &moe_folder,
    .keys = {moe_keys},
    .rope_halves = true,
    .qk_norm = MODEL_QK_NORM_HEADS,
    .split_ff = true,
    .presence = {{MODEL_ALWAYS, "output.weight"}},
};
