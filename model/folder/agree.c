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
static bool says_yes(struct base_field item)
{
    const cJSON *json = item.json;
    return cJSON_IsTrue(json) || cJSON_IsString(json) ||
           (cJSON_IsNumber(json) && json->valuedouble > 0);
}

/** Where a member's value is from, for the sentence. */
static const char *origin(const struct model_folder *f, struct base_field item)
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
    {"mla_use_output_gate", "attn_gate.weight", "", false},
    {"latent_moe_use_norm", "ffn_routed_norm.weight", "", false},
    {"q_lora_rank", "attn_q_a.weight", "", false},
    {"n_shared_experts", "ffn_up_shexp.weight", "", false},
    {"num_shared_experts", "ffn_up_shexp.weight", "", false},
    {"moe_num_shared_experts", "ffn_up_shexp.weight", "", false},
    {"shared_expert_intermediate_size", "ffn_up_shexp.weight", "", false},
    {"share_expert_dim", "ffn_up_shexp.weight", "", false},
};

static void check_pair(const struct model_folder *f, const struct pair *p)
{
    struct base_field item = model_config_find(f, p->member);
    const cJSON *of_class = model_config_class(f, p->member).json;
    const char *part = find_part(f, p->parts);
    bool shared = strcmp(p->parts, "ffn_up_shexp.weight") == 0;
    bool flag = cJSON_IsBool(item.json) || cJSON_IsBool(of_class); /* a class may know none */
    bool known = (item.json || model_config_null(f, p->member)) && (!flag || !f->class || of_class);
    bool yes = says_yes(item) != p->inverse;
    if (!known || yes == (part != NULL) || model_config_find(f, p->unless).json ||
        (shared && !find_part(f, "ffn_gate_inp.weight")))
        return;
    static const char fix[] = "correct config.json, or get the tensors that belong to it";
    int first = (int)strcspn(p->parts, " ");
    if (part)
        model_config_fail(f, STATUS_FORMAT,
                          "member '%s'%s says that no layer has %.*s, but tensor '%s' is there; %s",
                          p->member, origin(f, item), first, p->parts, part, fix);
    else
        model_config_fail(f, STATUS_FORMAT,
                          "member '%s'%s says that layers have %.*s, but no layer has it; %s",
                          p->member, origin(f, item), first, p->parts, fix);
}

/** Without a head the embedding is one, if config.json, or its class by default, says so. */
static void check_head(const struct model_folder *f)
{
    static const char name[] = "tie_word_embeddings";
    const cJSON *of_text = base_field_get(f->text, name).json;
    const cJSON *of_all = base_field_get(f->config, name).json;
    const cJSON *of_class = model_config_class(f, name).json;
    bool tied = cJSON_IsTrue(of_text) || cJSON_IsTrue(of_all);
    if (!of_text && !of_all)
        tied = !of_class || cJSON_IsTrue(of_class);
    if (tied || has_target(f, "output.weight"))
        return;
    model_config_fail(
        f, STATUS_FORMAT, "member '%s' is %s, so that the head is a tensor of its own, %s", name,
        of_text || of_all ? "false" : "absent, which is false for its class",
        f->arch->folder->tied
            ? "which is not read of this architecture; expected true"
            : "but there is no tensor 'lm_head.weight'; get the file that has it, or say true "
              "where the embedding is the head");
}

/** Whether each layer has experts; false: no member says it. */
static bool read_sparse(const struct model_folder *f, uint8_t *sparse)
{
    static const char counts[] = "first_k_dense_replace num_dense_layers moe_layer_start_index";
    struct base_field freq = model_config_find(f, "moe_layer_freq"), item = {0};
    uint32_t n = 0;
    if (model_config_find(f, "moe_layers_enum").json) /* Step's, which nothing else reads */
        return false;
    if (model_config_find(f, "mlp_layer_types").json) {
        model_config_kinds(f, "mlp_layer_types", "dense sparse", sparse);
        return true;
    }
    if (cJSON_IsArray(freq.json)) {
        while (n < f->n_layers && base_field_next(freq, &item))
            sparse[n++] = item.json->valuedouble != 0;
        return n == f->n_layers;
    }
    uint32_t end = f->n_layers - 1, n_dense = model_config_u32_or(f, counts, 0);
    uint32_t period = model_config_u32_or(f, "moe_layer_interval moe_layer_freq", 1);
    const cJSON *stop = model_config_find(f, "moe_layer_end_index").json;
    if (cJSON_IsNumber(stop) && stop->valuedouble >= 0)
        end = model_config_u32(f, "moe_layer_end_index");
    bool counts_from_1 = model_config_find(f, "moe_layer_interval").json != NULL;
    for (uint32_t i = 0; i < f->n_layers; i++)
        sparse[i] = i >= n_dense && i <= end && period > 0 && (i + counts_from_1) % period == 0;
    return model_config_find(f, counts).json != NULL;
}

/** Which layers have experts, by config.json and by their routers. */
static void check_experts(const struct model_folder *f)
{
    uint8_t sparse[MODEL_MAX_BLOCKS] = {0};
    if (f->n_experts == 0 || !read_sparse(f, sparse))
        return;
    for (uint32_t i = 0; i < f->n_layers && !f->json.status; i++) {
        char name[MODEL_TARGET_BYTES];
        snprintf(name, sizeof name, "blk.%u.ffn_gate_inp.weight", i);
        bool has = has_target(f, name);
        if (has != sparse[i])
            model_config_fail(
                f, STATUS_FORMAT,
                "layer %u has %s by members such as '%s', but %s by its tensors; correct "
                "config.json, or get the tensors that belong to it",
                i, sparse[i] ? "experts" : "none",
                model_config_find(f, "mlp_layer_types").json ? "mlp_layer_types"
                                                             : "first_k_dense_replace",
                has ? "experts" : "none");
    }
}

/** Keys stand for values, too, where a layer has the one without the other. */
static void check_values(const struct model_folder *f)
{
    struct base_field item = model_config_find(f, "attention_k_eq_v");
    bool found = false, said = cJSON_IsTrue(item.json);
    for (uint32_t i = 0; i < f->n_layers; i++) {
        char keys[MODEL_TARGET_BYTES], values[MODEL_TARGET_BYTES];
        snprintf(keys, sizeof keys, "blk.%u.attn_k.weight", i);
        snprintf(values, sizeof values, "blk.%u.attn_v.weight", i);
        found |= has_target(f, keys) && !has_target(f, values);
    }
    if (item.json && said != found)
        model_config_fail(f, STATUS_FORMAT,
                          "member 'attention_k_eq_v'%s is %s, but %s keys without values; correct "
                          "config.json, or get the tensors that belong to it",
                          origin(f, item), said ? "true" : "false",
                          found ? "some layer has" : "no layer has");
}

enum status model_folder_agree(const struct model_folder *f, struct status_why *why)
{
    check_head(f);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        check_pair(f, &pairs[i]);
    check_values(f);
    check_experts(f);
    return model_config_status(f, why);
}
