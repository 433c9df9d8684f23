/**
 * Qwen 3.5 and Qwen 3 Next: three layers of four are gated delta nets, the fourth is attention
 * whose output has a gate. The block that predicts the token after the next is of the latter kind.
 */
#include <math.h>

#include "model/arch.h"

static enum status read(struct model_hparams *h, const struct model_reading *r,
                        struct status_why *why)
{
    uint32_t interval;
    enum status status = model_key_u32_or(&r->keys, "full_attention_interval",
                                          (struct model_range){1, 1024}, 4, &interval, why);
    if (!status)
        status = model_recurrent_read(h, r, why);
    uint32_t n_heads = h->recurrent.n_heads;
    if (!status && h->recurrent.n_inner != h->recurrent.state * n_heads)
        status = status_fail(why, STATUS_FORMAT,
                             "%s: key '%s.ssm.inner_size' is %u, expected %u, %u heads of %u",
                             gguf_path(r->keys.file), r->keys.prefix, h->recurrent.n_inner,
                             h->recurrent.state * n_heads, n_heads, h->recurrent.state);
    h->recurrent.unit = r->options->llama_compat ? KERN_UNIT_MAX : KERN_UNIT_ADD;
    h->recurrent.unit_eps = r->options->llama_compat ? h->eps : 1e-6f;
    h->recurrent.scale = (float)(1 / sqrt((double)h->recurrent.state));
    bool recurrent[MODEL_MAX_BLOCKS] = {false};
    for (uint32_t i = 0; i + h->n_bound < h->n_layers; i++)
        recurrent[i] = (i + 1) % interval != 0;
    if (!status)
        status =
            model_key_bools(&r->keys, "attention.recurrent_layers", recurrent, r->n_blocks, why);
    for (uint32_t i = 0; i + h->n_bound < h->n_layers; i++)
        if (recurrent[i])
            h->layers[i].mixer = MODEL_DELTA_NET;
    return status;
}

#define QWEN35_ATTENTION                                                                           \
    .norms = {.ffn = "post_attention_norm"}, .rope_halves = true, .qk_norm = MODEL_QK_NORM_HEADS,  \
    .gated_attention = true, .gate_kind = KERN_SIGMOID, .nextn = MODEL_NEXTN_NORMED, .read = read, \
    .key_blind = {"rope.dimension_sections"}

const struct model_arch model_arch_qwen35 = {.name = "qwen35", QWEN35_ATTENTION};

const struct model_arch model_arch_qwen35moe = {
    .name = "qwen35moe",
    .shared = MODEL_SHARED_GATED,
    .split_ff = true,
    QWEN35_ATTENTION,
};

const struct model_arch model_arch_qwen3next = {
    .name = "qwen3next",
    .shared = MODEL_SHARED_GATED,
    .split_ff = true,
    .grouped_values = true,
    QWEN35_ATTENTION,
};
