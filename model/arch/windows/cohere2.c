/** Command R: LayerNorm without bias, both branches of the same rows, scaled logits. */
#include <string.h>

#include "model/arch.h"
#include "model/folder/state.h"
#include "model/state.h"

/** Command R7B and later: layers that see all have no positions. */
static void read_cohere2(struct model_hparams *h, const struct model_reading *r)
{
    (void)r;
    model_still_full_layers(h);
}

static const struct model_arch_key keys[] = {
    {"logit_scale", MODEL_OPTIONAL},
    {0},
};

static const struct model_folder_map folder2 = {
    .classes = {"Cohere2ForCausalLM"},
    .tied = true,
};

static const struct model_folder_map folder_r = {
    .classes = {"CohereForCausalLM"},
    .tied = true,
};

const struct model_arch model_arch_cohere2 = {
    .name = "cohere2",
    .folder = &folder2,
    .keys = {keys},
    .norms = {.ffn = ""},
    .layer_norm = true,
    .parallel = true,
    .windows = {.period = 4},
    .needs = {{"logit_scale"}, {"attention.sliding_window"}},
    .read = read_cohere2,
    .presence = {{MODEL_NEVER, "attn_norm.bias output_norm.bias"}},
};

const struct model_arch model_arch_command_r = {
    .name = "command-r",
    .folder = &folder_r,
    .nodes = model_normed_heads_nodes,
    .keys = {keys},
    .norms = {.ffn = ""},
    .layer_norm = true,
    .parallel = true,
    .qk_norm = MODEL_QK_NORM_EACH,
    .needs = {{"logit_scale"}},
    .presence = {{MODEL_NEVER, "attn_norm.bias output_norm.bias"},
                 {MODEL_SOMETIMES, MODEL_QK_GAINS, MODEL_WHERE_SHALLOW}},
};

/**
 * With experts: dense blocks rotate, too, and the one for the token after the next; with a shared
 * expert the two results are averaged.
 */
static void read_moe(struct model_hparams *h, const struct model_reading *r)
{
    (void)r;
    model_still_full_layers(h);
    for (uint32_t i = 0; i < h->n_layers && h->layers[i].n_experts == 0; i++)
        h->layers[i].rope = MODEL_ROPE_FULL;
    if (h->n_bound > 0)
        h->layers[h->n_layers - 1].rope = MODEL_ROPE_FULL;
    if (h->experts.n_ff_shared > 0)
        h->experts.scale /= 2;
}

static void bind_moe(struct model *m, size_t i)
{
    if (i != MODEL_NO_LAYER)
        m->layers[i].experts.shared.down.weight.scale /= 2;
}

static const struct model_arch_key moe_keys[] = {
    {"logit_scale", MODEL_OPTIONAL, .unset = 0.0625},
    {"expert_feed_forward_length", .from = "intermediate_size"},
    {"expert_shared_count", .from = "num_shared_experts"},
    {"expert_gating_func", .from = "expert_selection_fn", .unset = 1},
    {.from = "prefix_dense_sliding_window_pattern", .unset = 1, .member = MODEL_MEMBER_FIXED},
    {0},
};

/** A softmax of the chosen is one of all that is divided by their sum. */
static void write_moe(struct model_folder *f)
{
    struct base_field gating = model_config_find(f, "expert_selection_fn");
    struct base_field together = model_config_find(f, "shared_expert_combination_strategy");
    const cJSON *divides = model_config_find(f, "norm_topk_prob").json;
    bool softmax = !cJSON_IsString(gating.json) || base_field_is(gating, "softmax");
    model_write_bool(f, "expert_weights_norm", softmax || !divides || cJSON_IsTrue(divides));
    if (cJSON_IsString(together.json) && !base_field_is(together, "average"))
        base_field_fail(together, STATUS_UNSUPPORTED, "is not 'average'");
}

static const struct model_folder_map folder_moe = {
    .classes = {"Cohere2MoeForCausalLM"},
    .named_layers = true,
    .write = write_moe,
};

const struct model_arch model_arch_cohere2moe = {
    .name = "cohere2moe",
    .nodes = (const struct model_node[]){{MODEL_AT_SHARES, "", .other = true}, {0}}, /* halved */
    .folder = &folder_moe,
    .keys = {moe_keys},
    .norms = {.ffn = ""},
    .layer_norm = true,
    .rms_by_key = true,
    .parallel = true,
    .windows = {.period = 4, .first_full = true},
    .needs = {{"logit_scale"},
              {"attention.sliding_window"},
              {"attention.sliding_window_pattern"},
              {"expert_weights_norm", MODEL_WHEN_EXPERTS}},
    .gating = KERN_GATE_SIGMOID,
    .normalise = MODEL_NORMALISE_BY_KEY,
    .shared = MODEL_SHARED_PLAIN,
    .experts_by_tensors = true,
    .nextn = MODEL_NEXTN_NORMED,
    .read = read_moe,
    .bind = bind_moe,
    .presence = {{MODEL_NEVER, "attn_norm.bias output_norm.bias exp_probs_b.bias nextn.enorm.bias "
                               "nextn.hnorm.bias nextn.shared_head_norm.bias "
                               "layer_output_norm.bias"}},
};
