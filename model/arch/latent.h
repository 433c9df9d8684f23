/** What architectures with latent attention share. */
#ifndef MODEL_ARCH_LATENT_H
#define MODEL_ARCH_LATENT_H

#include "model/arch.h"

#define MODEL_LATENT_NAMES                                                                         \
    {"self_attn.q_a_proj", "attn_q_a"}, {"self_attn.q_a_layernorm", "attn_q_a_norm"},              \
        {"self_attn.q_b_proj", "attn_q_b"}, {"self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa"},     \
    {                                                                                              \
        "self_attn.kv_a_layernorm", "attn_kv_a_norm"                                               \
    }

/** The matrix that makes keys and values, cut into those of newer GGUF files where it can be. */
#define MODEL_COMPRESSED_NAMES                                                                     \
    MODEL_LATENT_NAMES, {"self_attn.kv_b_proj", "attn_kv_b", MODEL_IF_WHOLE},                      \
        {"self_attn.kv_b_proj.weight", "attn_k_b.weight", MODEL_OF_KEYS | MODEL_TURN_OVER},        \
    {                                                                                              \
        "self_attn.kv_b_proj.weight", "attn_v_b.weight", MODEL_OF_VALUES                           \
    }

/** Sizes of heads; key_length and value_length are those of the compressed cache in newer files. */
void model_latent_read(struct model_hparams *h, const struct model_reading *r);

#endif
