/* Rows of keys: those that several architectures share, and the one that counts. */
#include "model/hparams/arch_keys.h"

#include <string.h>

#include "model/arch.h"

const struct model_arch_key model_size_keys[] = {
    {"block_count", MODEL_REQUIRED, .from = ""},
    {"embedding_length", MODEL_REQUIRED, .from = ""},
    {"context_length", MODEL_REQUIRED},
    {0},
};

const struct model_arch_key model_latent_keys[] = {
    {"attention.kv_lora_rank"},
    {"attention.q_lora_rank", MODEL_OPTIONAL},
    {0},
};

const struct model_arch_key model_indexer_keys[] = {
    {"attention.indexer.head_count"},
    {"attention.indexer.key_length"},
    {"attention.indexer.top_k"},
    {0},
};

const struct model_arch_key model_grouped_keys[] = {
    {"expert_group_count"},
    {"expert_group_used_count"},
    {"expert_weights_scale"},
    {"expert_weights_norm"},
    {"leading_dense_block_count"},
    {"expert_shared_count"},
    {0},
};

const struct model_arch_key *model_arch_key_find(const struct model_arch *arch, const char *suffix)
{
    for (const struct model_arch_key *const *list = arch->keys; *list; list++)
        for (const struct model_arch_key *key = *list; key->suffix || key->from; key++)
            if (key->suffix && strcmp(key->suffix, suffix) == 0)
                return key;
    return NULL;
}
