/** Gemma 1 to 4: an embedding that is scaled; from 2 on norms before and after both branches. */
#include "model/arch/gemma/gemma.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/bind/bind.h"
#include "model/folder/state.h"
#include "model/state.h"

void model_gemma_scale(struct model_hparams *h)
{
    h->embedding_scale = (float)sqrt((double)h->n_embd);
}

static const struct model_node nodes[] = {
    {MODEL_AT_EMBEDDING, "embd", "GET_ROWS", .other = true},
    {0},
};

/* Gemma 1: LLaMA with GELU. */

static void read_gemma(struct model_hparams *h, const struct model_reading *r)
{
    (void)r;
    model_gemma_scale(h);
}

static const struct model_arch_key keys1[] = {
    {.from = "use_bidirectional_attention", .member = MODEL_MEMBER_FIXED},
    {0},
};

/** config.json may say gelu, by which its authors mean the form with tanh. */
static const struct model_folder_map folder1 = {
    .classes = {"GemmaForCausalLM"},
    .norms_less_one = true,
    .tied = true,
    .activation = "gelu",
};

const struct model_arch model_arch_gemma = {
    .name = "gemma",
    .folder = &folder1,
    .nodes = nodes,
    .keys = {keys1},
    .rope_halves = true,
    .old_base = true,
    .activation = KERN_GELU,
    .read = read_gemma,
};

/** The scale of the scores of the largest model, which has n_layers: 1 / sqrt(D / H). */
static void scale_largest(struct model_hparams *h, uint32_t n_layers)
{
    for (uint32_t i = 0; h->n_layers == n_layers && i < n_layers; i++)
        h->layers[i].scale = (float)sqrt((double)h->layers[i].n_heads / h->n_embd);
}

/* Gemma 2: soft caps, every second layer slides. */

static void read_gemma2(struct model_hparams *h, const struct model_reading *r)
{
    (void)r;
    scale_largest(h, 46);
    model_gemma_scale(h);
}

static const struct model_folder_name folder_names[] = {
    {"post_attention_layernorm", "post_attention_norm"},
    {"pre_feedforward_layernorm", "ffn_norm"},
    {"post_feedforward_layernorm", "post_ffw_norm"},
    {0},
};

static const struct model_arch_key keys2[] = {
    {"attn_logit_softcapping", MODEL_OPTIONAL, .absent = 50},
    {"final_logit_softcapping", MODEL_OPTIONAL, .absent = 30},
    {0},
};

static const struct model_arch_key keys3[] = {
    {"final_logit_softcapping", MODEL_OPTIONAL},
    {.from = "use_bidirectional_attention", .member = MODEL_MEMBER_FIXED},
    {0},
};

static const struct model_folder_map folder2 = {
    .classes = {"Gemma2ForCausalLM"},
    .names = {folder_names},
    .norms_less_one = true,
    .tied = true,
    .largest = 46,
};

const struct model_arch model_arch_gemma2 = {
    .name = "gemma2",
    .folder = &folder2,
    .nodes = nodes,
    .keys = {keys2, keys3},
    .norms = {.attn_post = "post_attention_norm", .ffn_post = "post_ffw_norm"},
    .rope_halves = true,
    .sliding_rope = true,
    .old_base = true,
    .windows = {.period = 2, .length = 4096},
    .activation = KERN_GELU,
    .read = read_gemma2,
};

/* Gemma 3: norms of q and k instead of the scores' cap; five layers slide, the sixth sees all. */

static void read_gemma3(struct model_hparams *h, const struct model_reading *r)
{
    (void)r;
    scale_largest(h, 62);
    model_gemma_scale(h);
}

static const struct model_folder_map folder3 = {
    .classes = {"Gemma3ForCausalLM", "Gemma3ForConditionalGeneration"},
    .names = {folder_names},
    .norms_less_one = true,
    .tied = true,
    .largest = 62,
};

const struct model_arch model_arch_gemma3 = {
    .name = "gemma3",
    .folder = &folder3,
    .nodes = nodes,
    .keys = {keys3},
    .norms = {.attn_post = "post_attention_norm", .ffn_post = "post_ffw_norm"},
    .rope_halves = true,
    .sliding_rope = true,
    .sliding_base = 10000,
    .qk_norm = MODEL_QK_NORM_HEADS,
    .windows = {.period = 6},
    .needs = {{"attention.sliding_window", MODEL_WHEN_EVER,
               "all layers see all keys, as Rnj 1's do; Google's models have windows"}},
    .activation = KERN_GELU,
    .read = read_gemma3,
};

/*
 * Gemma 4: as Gemma 3, with heads of another size in sliding layers, keys that later layers share,
 * a further input of each layer, and in some models experts beside the dense feed-forward.
 */

/** Heads of sliding layers, and their angles. */
static void read_sliding(struct model_hparams *h, const struct model_reading *r)
{
    const struct model_keys *keys = &r->keys;
    struct model_rope *rope = &h->ropes[MODEL_ROPE_SLIDING];
    uint32_t key_size = model_key_u32_or(keys, "attention.key_length_swa", model_head_size_range,
                                         h->layers[0].key_size);
    uint32_t value_size =
        model_key_u32_or(keys, "attention.value_length_swa", model_head_size_range, key_size);
    rope->n_rot = model_key_u32_or(keys, "rope.dimension_count_swa",
                                   (struct model_range){2, key_size}, key_size);
    for (uint32_t i = 0; i < h->n_layers; i++) {
        struct model_layer_shape *l = &h->layers[i];
        l->scale = 1;
        if (l->slides) {
            l->key_size = key_size;
            l->value_size = value_size;
        }
    }
}

static void read_gemma4(struct model_hparams *h, const struct model_reading *r)
{
    read_sliding(h, r);
    model_gemma_scale(h);
    model_gemma_read_shared(h, r);
}

static void bind_experts(struct model *m, size_t i)
{
    size_t n = m->hparams.n_embd;
    struct model_experts *x = &m->layers[i].experts;
    model_bind_layer_vector(m, i, "ffn_gate_inp.scale", n, MODEL_ALWAYS, &x->router_norm.gain);
    x->router.weight.scale = (float)(1 / sqrt((double)n));
    model_bind_norm(m, i, "pre_ffw_norm_2", n, &x->norm);
    model_bind_norm(m, i, "post_ffw_norm_2", n, &x->post_norm);
    model_bind_norm(m, i, "post_ffw_norm_1", n, &x->dense_post_norm);
}

static void bind_gemma4(struct model *m, size_t i)
{
    bool has_input = m->hparams.per_layer_width > 0;
    if (has_input && i == MODEL_NO_LAYER)
        model_gemma_bind_input_ends(m);
    if (i == MODEL_NO_LAYER)
        return;
    if (has_input)
        model_gemma_bind_input(m, i);
    if (m->hparams.layers[i].n_experts > 0)
        bind_experts(m, i);
    model_bind_number(m, i, "layer_output_scale.weight", &m->layers[i].output_scale);
}

static const struct model_folder_name folder4_names[] = {
    {"embed_tokens_per_layer", "per_layer_token_embd"},
    {"per_layer_model_projection", "per_layer_model_proj"},
    {"per_layer_projection_norm", "per_layer_proj_norm"},
    {"post_attention_layernorm", "post_attention_norm"},
    {"pre_feedforward_layernorm", "ffn_norm"},
    {"post_feedforward_layernorm", "post_ffw_norm"},
    {"pre_feedforward_layernorm_2", "pre_ffw_norm_2"},
    {"post_feedforward_layernorm_1", "post_ffw_norm_1"},
    {"post_feedforward_layernorm_2", "post_ffw_norm_2"},
    {"per_layer_input_gate", "inp_gate"},
    {"per_layer_projection", "proj"},
    {"post_per_layer_input_norm", "post_norm"},
    {"layer_scalar", "layer_output_scale.weight"},
    {"router.proj", "ffn_gate_inp"},
    {"router.scale", "ffn_gate_inp.scale"},
    {"router.per_expert_scale", "ffn_down_exps.scale"},
    {"experts.gate_up_proj", "ffn_gate_up_exps.weight"},
    {"experts.down_proj", "ffn_down_exps.weight"},
    {0},
};

static const struct model_arch_key keys4[] = {
    {"attention.shared_kv_layers"},
    {"embedding_length_per_layer_input", MODEL_OPTIONAL},
    {"attention.key_length_swa"},
    {"attention.value_length_swa"},
    {"final_logit_softcapping", MODEL_OPTIONAL},
    {0},
};

/** A number of a layer that sees all keys; the newer form has an object for each such layer. */
static uint32_t of_full_layer(const struct model_folder *f, uint32_t layer, const char *name,
                              const char *older, uint32_t absent)
{
    char number[16];
    snprintf(number, sizeof number, "%u", layer);
    struct base_field own = base_field_get(model_config_find(f, "per_layer_config"), number);
    if (!own.json)
        return model_config_u32_or(f, older, absent);
    if (!base_field_get(own, name).json)
        return absent;
    uint32_t value = (uint32_t)base_field_uint(own, name, UINT16_MAX);
    if (value == 0)
        base_field_fail_member(own, name, STATUS_FORMAT, "is 0, expected a number from 1 to 65535");
    return value;
}

/** Layers that see all keys have heads of their own; later layers may be twice as wide. */
static void sizes_of_folder4(struct model_folder *f)
{
    uint8_t slides[MODEL_MAX_BLOCKS];
    uint32_t size = 0;
    uint32_t n = model_config_kinds(f, "layer_types", "full_attention sliding_attention", slides);
    if (n == 0)
        model_config_fail(f, STATUS_UNSUPPORTED, "has no member 'layer_types'");
    uint32_t n_ff = model_config_u32(f, "intermediate_size");
    uint32_t n_shared = model_config_u32_or(f, "num_kv_shared_layers", 0);
    bool doubled = cJSON_IsTrue(model_config_find(f, "use_double_wide_mlp").json);
    bool shares = cJSON_IsTrue(model_config_find(f, "attention_k_eq_v").json);
    for (uint32_t i = 0; i < n; i++) {
        f->n_ff_of[i] = doubled && i + n_shared >= n ? 2 * n_ff : n_ff;
        f->kv_heads_of[i] = f->n_kv_heads;
        if (slides[i])
            continue;
        uint32_t own = of_full_layer(f, i, "head_dim", "global_head_dim", f->head_size);
        uint32_t n_kv =
            of_full_layer(f, i, "num_key_value_heads", "num_global_key_value_heads", f->n_kv_heads);
        if (shares)
            f->kv_heads_of[i] = n_kv;
        if (size > 0 && own != size)
            model_config_fail(f, STATUS_UNSUPPORTED,
                              "heads of layer %u have %u numbers, expected %u, as before", i, own,
                              size);
        size = own;
    }
    f->kv_by_layer = f->ff_by_layer = true;
    f->head_size = size > 0 ? size : f->head_size;
    struct base_field full =
        base_field_get(model_config_find(f, "rope_parameters"), "full_attention");
    if (full.json && !base_field_is(base_field_get(full, "rope_type"), "proportional"))
        model_config_fail(f, STATUS_UNSUPPORTED,
                          "RoPE of layers that see all has not the type proportional");
    if (base_field_is(model_config_find(f, "use_bidirectional_attention"), "all"))
        model_config_fail(f, STATUS_UNSUPPORTED,
                          "member 'use_bidirectional_attention' is 'all': tokens see later ones");
}

static const struct model_folder_map folder4 = {
    .classes = {"Gemma4ForConditionalGeneration", "Gemma4ForCausalLM",
                "Gemma4UnifiedForConditionalGeneration"},
    .names = {folder4_names},
    .tied = true,
    .sizes = sizes_of_folder4,
};

const struct model_arch model_arch_gemma4 = {
    .name = "gemma4",
    .folder = &folder4,
    .nodes = (const struct model_node[]){{MODEL_AT_EMBEDDING, "embd", "GET_ROWS", .other = true},
                                         {MODEL_AT_ATTN_OUT, "attn_out", "ADD", .other = true},
                                         {MODEL_AT_ATTN_RESIDUAL, "attn_out", "ADD"},
                                         {MODEL_AT_FFN_NORM, "ffn_norm_1", "MUL"},
                                         {MODEL_AT_FFN_OUT, "ffn_down_s", "MUL"},
                                         {0}},
    .keys = {keys4},
    .norms = {.attn_post = "post_attention_norm", .ffn_post = "post_ffw_norm"},
    .rope_halves = true,
    .sliding_rope = true,
    .sliding_base = 10000,
    .qk_norm = MODEL_QK_NORM_HEADS,
    .bare_v_norm = true,
    .windows = {.period = 6},
    .needs = {{"attention.sliding_window"},
              {"attention.sliding_window_pattern"},
              {"final_logit_softcapping"}},
    .activation = KERN_GELU,
    .experts_beside_dense = true,
    .presence = {{MODEL_ALWAYS, "rope_freqs.weight ffn_down_exps.scale"},
                 {MODEL_SOMETIMES, "attn_v.weight", MODEL_WHERE_FULL}},
    .read = read_gemma4,
    .bind = bind_gemma4,
};
