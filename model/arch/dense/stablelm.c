/** StableLM: LayerNorm; the largest model has both branches of the same rows and norms of heads. */
#include "model/arch.h"

static void read(struct model_hparams *h, const struct model_reading *r)
{
    /* Files of models that are not may say so, too, but not the reverse. */
    bool may = model_key_bool(&r->keys, "use_parallel_residual", true);
    h->parallel = may && !gguf_tensor_find(r->keys.file, "blk.0.ffn_norm.weight");
}

/** The largest model's norms of heads are a tensor for each head: not read. */
static const struct model_arch_key keys[] = {
    {.from = "qk_layernorm", .member = MODEL_MEMBER_FALSE},
    {0},
};

static const struct model_folder_map folder = {.classes = {"StableLmForCausalLM"}};

const struct model_arch model_arch_stablelm = {
    .name = "stablelm",
    .folder = &folder,
    .keys = {keys},
    .layer_norm = true,
    .rope_halves = true,
    .qk_norm = MODEL_QK_NORM_EACH,
    .needs = {{"rope.dimension_count"}},
    .old_base = true,
    .read = read,
    .presence = {{MODEL_ALWAYS, "output.weight"}, {MODEL_SOMETIMES, MODEL_QK_GAINS}},
};
