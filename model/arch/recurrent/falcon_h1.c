/** Falcon H1: attention and Mamba-2 side by side in every layer, of the same normalised rows. */
#include "model/arch.h"

static void read(struct model_hparams *h, const struct model_reading *r)
{
    for (uint32_t i = 0; i < h->n_layers; i++)
        h->layers[i].mixer = MODEL_ATTENTION_MAMBA2;
    h->recurrent.scale = 1;
    model_recurrent_read(h, r);
}

const struct model_arch model_arch_falcon_h1 = {
    .name = "falcon-h1",
    /* Of attention and Mamba-2 side by side the second one's output is shown. */
    .nodes = (const struct model_node[]){{MODEL_AT_ATTN_OUT, "ssm_out", "MUL_MAT MUL RESHAPE"},
                                         {MODEL_AT_ATTN_OUT, "blk.ssm_out.weight", "MUL_MAT"},
                                         {MODEL_AT_ATTN_OUT, "blk.ssm_out.scale", "MUL"},
                                         {MODEL_AT_ATTN_OUT, "", .other = true},
                                         {0}},
    .rope_halves = true,
    .no_output_bias = true,
    .read = read,
    .presence = {{MODEL_SOMETIMES, "ssm_norm.weight"}},
};
