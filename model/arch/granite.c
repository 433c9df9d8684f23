/** Granite 3: four scales; granitemoe the same with experts; Granite 4 mostly Mamba-2. */
#include "model/arch.h"

static enum status read(struct model_hparams *h, const struct model_reading *r,
                        struct status_why *why)
{
    const struct model_keys *keys = &r->keys;
    float logit_scale = 0;
    float attention_scale = 0;
    bool rotates = true;
    enum status status = model_key_positive(keys, "embedding_scale", &h->embedding_scale, why);
    if (!status)
        status = model_key_positive(keys, "residual_scale", &h->residual_scale, why);
    if (!status)
        status = model_key_positive(keys, "attention.scale", &attention_scale, why);
    if (!status)
        status = model_key_positive(keys, "logit_scale", &logit_scale, why);
    if (!status)
        status = model_key_bool(keys, "rope.scaling.finetuned", &rotates, why);
    if (!status && logit_scale == 0)
        status = status_fail(why, STATUS_FORMAT,
                             "%s: key '%s.logit_scale' is missing, expected a number above 0",
                             gguf_path(keys->file), keys->prefix);
    h->logit_scale = 1 / logit_scale;
    for (uint32_t i = 0; i < h->n_layers; i++) {
        if (attention_scale > 0)
            h->layers[i].scale = attention_scale;
        if (!rotates)
            h->layers[i].rope = MODEL_ROPE_OFF;
    }
    return status;
}

static const struct model_folder_key folder_keys[] = {
    {"attention_multiplier", "attention.scale", MODEL_MEMBER_F32},
    {"embedding_multiplier", "embedding_scale", MODEL_MEMBER_F32},
    {"residual_multiplier", "residual_scale", MODEL_MEMBER_F32},
    {"logits_scaling", "logit_scale", MODEL_MEMBER_F32},
    {0},
};

static const struct model_folder_map folder = {
    .classes = {"GraniteForCausalLM"},
    .keys = folder_keys,
    .turned = true,
};

static const struct model_folder_name moe_names[] = {
    {"block_sparse_moe.router.layer", "ffn_gate_inp", MODEL_KEEP},
    {"block_sparse_moe.input_linear", "ffn_gate_exps", MODEL_FIRST_HALF},
    {"block_sparse_moe.input_linear", "ffn_up_exps", MODEL_SECOND_HALF},
    {"block_sparse_moe.output_linear", "ffn_down_exps", MODEL_KEEP},
    {"shared_mlp.input_linear", "ffn_gate_shexp", MODEL_FIRST_HALF},
    {"shared_mlp.input_linear", "ffn_up_shexp", MODEL_SECOND_HALF},
    {"shared_mlp.output_linear", "ffn_down_shexp", MODEL_KEEP},
    {0},
};

static const struct model_folder_key moe_keys[] = {
    {"attention_multiplier", "attention.scale", MODEL_MEMBER_F32},
    {"embedding_multiplier", "embedding_scale", MODEL_MEMBER_F32},
    {"residual_multiplier", "residual_scale", MODEL_MEMBER_F32},
    {"logits_scaling", "logit_scale", MODEL_MEMBER_F32},
    {"shared_intermediate_size", "expert_shared_feed_forward_length", MODEL_MEMBER_U32},
    {0},
};

static const struct model_folder_map moe_folder = {
    .classes = {"GraniteMoeForCausalLM", "GraniteMoeSharedForCausalLM"},
    .names = moe_names,
    .keys = moe_keys,
    .turned = true,
};

const struct model_arch model_arch_granite = {.name = "granite", .folder = &folder, .read = read};

const struct model_arch model_arch_granitemoe = {
    .name = "granitemoe",
    .folder = &moe_folder,
    .shared = MODEL_SHARED_PLAIN,
    .read = read,
};

/** Its steps may be as short as they come. */
static enum status read_hybrid(struct model_hparams *h, const struct model_reading *r,
                               struct status_why *why)
{
    enum status status = read(h, r, why);
    h->recurrent.scale = 1;
    return status ? status : model_recurrent_read(h, r, why);
}

const struct model_arch model_arch_granitehybrid = {
    .name = "granitehybrid",
    .without_keys = MODEL_MAMBA2,
    .shared = MODEL_SHARED_PLAIN,
    .experts_by_tensors = true,
    .read = read_hybrid,
};
