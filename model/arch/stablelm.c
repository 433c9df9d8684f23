/** StableLM: LayerNorm; the largest model has both branches of the same rows and norms of heads. */
#include "model/arch.h"

static enum status read(struct model_hparams *h, const struct model_reading *r,
                        struct status_why *why)
{
    (void)why;
    h->parallel = !gguf_tensor_find(r->keys.file, "blk.0.ffn_norm.weight");
    return STATUS_OK;
}

const struct model_arch model_arch_stablelm = {
    .name = "stablelm",
    .layer_norm = true,
    .rope_halves = true,
    .qk_norm = MODEL_QK_NORM_EACH,
    .read = read,
};
