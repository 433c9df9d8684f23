/* What config.json, or its class by default, says about tensors, against the tensors. */
#include <stdio.h>
#include <string.h>

#include "base/text/words.h"
#include "model/folder/state.h"

/** The first stored tensor that is one of these parts of a layer; parts: separated by blanks. */
static const char *find_part(const struct model_folder *f, const char *parts)
{
    for (size_t i = 0; i < f->target_names.n; i++) {
        const char *name = f->targets[i]->name;
        const char *part = strncmp(name, "blk.", 4) == 0 ? strchr(name + 4, '.') : NULL;
        if (part && base_words_index(parts, part + 1) >= 0)
            return f->targets[i]->sources[f->targets[i]->n_sources - 1]->name;
    }
    return NULL;
}

static bool has_target(const struct model_folder *f, const char *name)
{
    return base_strtab_find(&f->target_names, (struct base_string){name, strlen(name)}) >= 0;
}

/** Whether a member says yes: true, a number above 0 or a text. */
static bool says_yes(const cJSON *item)
{
    return cJSON_IsTrue(item) || cJSON_IsString(item) ||
           (cJSON_IsNumber(item) && item->valuedouble > 0);
}

/** Where a member's value is from, for the sentence. */
static const char *origin(const struct model_folder *f, const cJSON *item)
{
    return model_config_of_class(f, item) ? " (absent, and so by its class's default)" : "";
}

/** A member, and the parts of layers that some layer has if, and only if, it says yes. */
static const struct pair {
    const char *member, *parts;
    const char *unless; /* classes with such a member mean something else */
    bool inverse;       /* ... if it says no */
} pairs[] = {
    {"attention_bias", "attn_q.bias attn_qkv.bias attn_q_a.bias attn_kv_a_mqa.bias", "", false},
    {"qkv_bias", "attn_q.bias attn_qkv.bias", "", false},
    {"use_qkv_bias", "attn_q.bias attn_qkv.bias", "", false},
    {"attention_out_bias", "attn_output.bias", "", false},
    {"mlp_bias", "ffn_up.bias ffn_up_shexp.bias", "", false},
    {"use_bias", "attn_q.bias", "attention_bias", false},
    {"use_conv_bias", "ssm_conv1d.bias", "", false},
    {"mamba_conv_bias", "ssm_conv1d.bias", "", false},
    {"mamba_proj_bias", "ssm_in.bias", "use_bias", false},
    {"conv_bias", "shortconv.conv.bias shortconv.in_proj.bias", "", false},
    {"use_expert_bias", "exp_probs_b.bias", "", false},
    {"use_qk_norm", "attn_q_norm.weight", "interleave_moe_layer_step", false},
    {"use_parallel_residual", "ffn_norm.weight", "", true},
    {"enable_moe_block", "ffn_gate_inp.weight", "", false},
    {"gating", "attn_gate.weight", "", false},
    {"q_lora_rank", "attn_q_a.weight", "", false},
    {"n_shared_experts", "ffn_up_shexp.weight", "", false},
    {"num_shared_experts", "ffn_up_shexp.weight", "", false},
    {"moe_num_shared_experts", "ffn_up_shexp.weight", "", false},
    {"shared_expert_intermediate_size", "ffn_up_shexp.weight", "", false},
    {"share_expert_dim", "ffn_up_shexp.weight", "", false},
};

static enum status check_pair(const struct model_folder *f, const struct pair *p,
                              struct status_why *why)
{
    const cJSON *item = model_config_find(f, p->member);
    const cJSON *of_class = model_config_class(f, p->member);
    const char *part = find_part(f, p->parts);
    bool shared = strcmp(p->parts, "ffn_up_shexp.weight") == 0;
    bool flag = cJSON_IsBool(item) || cJSON_IsBool(of_class); /* of which a class may know none */
    bool known = (item || model_config_null(f, p->member)) && (!flag || !f->class || of_class);
    bool yes = says_yes(item) != p->inverse;
    if (!known || yes == (part != NULL) || model_config_find(f, p->unless) ||
        (shared && !find_part(f, "ffn_gate_inp.weight")))
        return STATUS_OK;
    static const char fix[] = "correct config.json, or get the tensors that belong to it";
    int first = (int)strcspn(p->parts, " ");
    if (part)
        return model_config_fail(f, STATUS_FORMAT, why,
                                 "member '%s'%s says that no layer has %.*s, but tensor '%s' is "
                                 "there; %s",
                                 p->member, origin(f, item), first, p->parts, part, fix);
    return model_config_fail(f, STATUS_FORMAT, why,
                             "member '%s'%s says that layers have %.*s, but no layer has it; %s",
                             p->member, origin(f, item), first, p->parts, fix);
}

/** Without a head the embedding is one, if config.json, or its class by default, says so. */
static enum status check_head(const struct model_folder *f, struct status_why *why)
{
    static const char name[] = "tie_word_embeddings";
    const cJSON *of_text = cJSON_GetObjectItemCaseSensitive(f->text, name);
    const cJSON *of_all = cJSON_GetObjectItemCaseSensitive(f->config, name);
    const cJSON *of_class = model_config_class(f, name);
    bool tied = cJSON_IsTrue(of_text) || cJSON_IsTrue(of_all);
    if (!of_text && !of_all)
        tied = !of_class || cJSON_IsTrue(of_class);
    if (tied || has_target(f, "output.weight"))
        return STATUS_OK;
    return model_config_fail(
        f, STATUS_FORMAT, why, "member '%s' is %s, so that the head is a tensor of its own, %s",
        name, of_text || of_all ? "false" : "absent, which is false for its class",
        f->arch->folder->tied
            ? "which is not read of this architecture; expected true"
            : "but there is no tensor 'lm_head.weight'; get the file that has it, or say true "
              "where the embedding is the head");
}

/** Whether a layer has experts by a member that is a number of layers before the first. */
static enum status read_sparse(const struct model_folder *f, uint8_t *sparse, bool *known,
                               struct status_why *why)
{
    static const char counts[] = "first_k_dense_replace num_dense_layers moe_layer_start_index";
    const cJSON *list = model_config_find(f, "mlp_layer_types");
    const cJSON *freq = model_config_find(f, "moe_layer_freq");
    uint32_t n = 0, n_dense = 0, period = 1;
    *known = !model_config_find(f, "moe_layers_enum"); /* Step's, which nothing else reads */
    if (!*known)
        return STATUS_OK;
    if (list)
        return model_config_kinds(f, "mlp_layer_types", "dense sparse", sparse, &n, why);
    if (cJSON_IsArray(freq)) {
        for (const cJSON *item = freq->child; item && n < f->n_layers; item = item->next)
            sparse[n++] = item->valuedouble != 0;
        *known = n == f->n_layers;
        return STATUS_OK;
    }
    uint32_t last = f->n_layers - 1, end = last;
    const cJSON *stop = model_config_find(f, "moe_layer_end_index");
    *known = model_config_any(f, counts) != NULL;
    enum status status = model_config_u32(f, counts, false, &n_dense, why);
    if (!status)
        status = model_config_u32(f, "moe_layer_interval moe_layer_freq", false, &period, why);
    if (!status && cJSON_IsNumber(stop) && stop->valuedouble >= 0)
        status = model_config_u32(f, "moe_layer_end_index", false, &end, why);
    bool counts_from_1 = model_config_find(f, "moe_layer_interval") != NULL;
    for (uint32_t i = 0; !status && i < f->n_layers; i++)
        sparse[i] = i >= n_dense && i <= end && period > 0 && (i + counts_from_1) % period == 0;
    return status;
}

/** Which layers have experts, by config.json and by their routers. */
static enum status check_experts(const struct model_folder *f, struct status_why *why)
{
    uint8_t sparse[MODEL_MAX_BLOCKS] = {0};
    bool known = false;
    if (f->n_experts == 0 || f->n_layers > MODEL_MAX_BLOCKS)
        return STATUS_OK;
    enum status status = read_sparse(f, sparse, &known, why);
    for (uint32_t i = 0; known && !status && i < f->n_layers; i++) {
        char name[MODEL_TARGET_BYTES];
        snprintf(name, sizeof name, "blk.%u.ffn_gate_inp.weight", i);
        bool has = has_target(f, name);
        if (has != sparse[i])
            return model_config_fail(f, STATUS_FORMAT, why,
                                     "layer %u has %s by members such as '%s', but %s by its "
                                     "tensors; correct config.json, or get the tensors that belong "
                                     "to it",
                                     i, sparse[i] ? "experts" : "none",
                                     model_config_find(f, "mlp_layer_types")
                                         ? "mlp_layer_types"
                                         : "first_k_dense_replace",
                                     has ? "experts" : "none");
    }
    return status;
}

/** Keys stand for values, too, where a layer has the one without the other. */
static enum status check_values(const struct model_folder *f, struct status_why *why)
{
    const cJSON *item = model_config_find(f, "attention_k_eq_v");
    bool found = false;
    for (uint32_t i = 0; i < f->n_layers; i++) {
        char keys[MODEL_TARGET_BYTES], values[MODEL_TARGET_BYTES];
        snprintf(keys, sizeof keys, "blk.%u.attn_k.weight", i);
        snprintf(values, sizeof values, "blk.%u.attn_v.weight", i);
        found |= has_target(f, keys) && !has_target(f, values);
    }
    if (!item || cJSON_IsTrue(item) == found)
        return STATUS_OK;
    return model_config_fail(f, STATUS_FORMAT, why,
                             "member 'attention_k_eq_v'%s is %s, but %s keys without values; "
                             "correct config.json, or get the tensors that belong to it",
                             origin(f, item), cJSON_IsTrue(item) ? "true" : "false",
                             found ? "some layer has" : "no layer has");
}

enum status model_folder_agree(const struct model_folder *f, struct status_why *why)
{
    enum status status = check_head(f, why);
    for (size_t i = 0; !status && i < sizeof pairs / sizeof *pairs; i++)
        status = check_pair(f, &pairs[i], why);
    if (!status)
        status = check_values(f, why);
    return status ? status : check_experts(f, why);
}
