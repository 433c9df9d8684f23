/** Spark X2.5: LLaMA with windows, a gate for each head, and GELU in place of SiLU. */
#include "model/arch.h"
#include "model/folder/state.h"

/** llama.cpp has one GELU, with tanh; the authors' is exact. */
static void read(struct model_hparams *h, const struct model_reading *r)
{
    model_sliding_rope_read(h, r);
    for (uint32_t i = 0; r->options->llama_compat && i < h->n_layers; i++)
        h->layers[i].activation.kind = KERN_GELU;
    if (r->options->llama_compat)
        model_remark(r->remarks, "GELU is computed with tanh, as llama.cpp does");
}

static void write(struct model_folder *f)
{
    struct base_field mode = model_config_find(f, "gate_attn_act_mode");
    if (mode.json && !base_field_is(mode, "sigmoid"))
        base_field_fail(mode, STATUS_UNSUPPORTED, "is not sigmoid, which architecture %s computes",
                        f->arch->name);
}

static const struct model_folder_name folder_names[] = {
    {"self_attn.q_k_v_proj", "attn_qkv"},
    {"self_attn.g_proj", "attn_gate"},
    {0},
};

static const struct model_arch_key keys[] = {
    {.from = "headwise_attn_output_gate", .member = MODEL_MEMBER_TRUE},
    {0},
};

static const struct model_folder_map folder = {
    .classes = {"Spark2_5ForCausalLM"},
    .names = {folder_names},
    .named_layers = true,
    .write = write,
};

/** attn_out is what attention's gates multiply. */
static const struct model_node nodes[] = {
    {MODEL_AT_Q_PROJECTED, "Qcur", "VIEW"},
    {MODEL_AT_K_PROJECTED, "Kcur", "VIEW"},
    {MODEL_AT_V_PROJECTED, "Vcur", "VIEW"},
    {MODEL_AT_ATTENTION, "attn_out"},
    {MODEL_AT_ATTN_OUT, "attn_out_proj", "MUL_MAT"},
    {MODEL_AT_ATTN_OUT, "attn_out", .other = true},
    {0},
};

const struct model_arch model_arch_spark2_5 = {
    .name = "spark2_5",
    .folder = &folder,
    .nodes = nodes,
    .keys = {keys},
    .rope_halves = true,
    .sliding_rope = true,
    .attn_gate = true,
    .gate_kind = KERN_SIGMOID,
    .windows = {.period = 4, .by_array = true},
    .activation = KERN_GELU_EXACT,
    .needs = {{"attention.sliding_window"}, {"attention.sliding_window_pattern"}},
    .read = read,
};
