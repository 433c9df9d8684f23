/** Llama 4: three layers of four see their own run of 8192 positions, the fourth has no positions.
 */
#include "model/arch.h"
#include "model/folder/state.h"

enum { MAVERICK_EXPERTS = 128 };

static void read(struct model_hparams *h, const struct model_reading *r)
{
    enum { RUN = 8192, PERIOD = 4 };
    struct model_range any = {0, INT32_MAX};
    uint32_t window = model_key_u32_or(&r->keys, "attention.sliding_window", any, RUN);
    window = window ? RUN : 0; /* the key only switches it off */
    uint32_t step = model_key_u32_or(&r->keys, "interleave_moe_layer_step", any, 0);
    h->experts.n_ff_shared = h->layers[h->n_layers - 1].n_ff_expert;
    h->temperature = (struct model_temperature){.scale = 0.1f, .length = RUN, .offset = 1};
    for (uint32_t i = 0; i < h->n_layers; i++) {
        struct model_layer_shape *l = &h->layers[i];
        bool rotates = window == 0 || (i + 1) % PERIOD != 0;
        if (step == 0 || (i + 1) % step != 0)
            l->n_experts = 0;
        l->bare_qk_norm = rotates && h->experts.n != MAVERICK_EXPERTS;
        l->chunk = rotates ? window : 0;
        l->tempered = !rotates;
        if (!rotates)
            l->rope = MODEL_ROPE_OFF;
    }
}

/** Matrices of experts are stored transposed, the columns of the gate before those of the other. */
static const struct model_folder_name folder_names[] = {
    {"feed_forward.gate_proj", "ffn_gate"},
    {"feed_forward.up_proj", "ffn_up"},
    {"feed_forward.down_proj", "ffn_down"},
    {"feed_forward.router", "ffn_gate_inp"},
    {"feed_forward.experts.gate_up_proj", "ffn_gate_exps.weight",
     MODEL_OF_COLUMNS | MODEL_FIRST_HALF | MODEL_TURN_OVER},
    {"feed_forward.experts.gate_up_proj", "ffn_up_exps.weight",
     MODEL_OF_COLUMNS | MODEL_SECOND_HALF | MODEL_TURN_OVER},
    {"feed_forward.experts.down_proj", "ffn_down_exps.weight", MODEL_TURN_OVER},
    {"feed_forward.shared_expert.gate_proj", "ffn_gate_shexp"},
    {"feed_forward.shared_expert.up_proj", "ffn_up_shexp"},
    {"feed_forward.shared_expert.down_proj", "ffn_down_shexp"},
    {0},
};

static const struct model_arch_key keys[] = {
    {"expert_feed_forward_length", .from = "intermediate_size"},
    {"interleave_moe_layer_step"},
    {0},
};

/** What the reader takes for granted. */
static void write_folder(struct model_folder *f)
{
    static const struct {
        const char *name;
        double expected;
    } numbers[] = {{"attention_chunk_size", 8192},
                   {"floor_scale", 8192},
                   {"attn_scale", 0.1},
                   {"no_rope_layer_interval", 4}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        double found = model_config_f32_or(f, numbers[i].name, numbers[i].expected);
        if (found != numbers[i].expected)
            model_config_fail(f, STATUS_UNSUPPORTED,
                              "member '%s' is %g, expected %g, which architecture %s has",
                              numbers[i].name, found, numbers[i].expected, f->arch->name);
    }
    const cJSON *norm = model_config_find(f, "use_qk_norm").json;
    const cJSON *tuned = model_config_find(f, "attn_temperature_tuning").json;
    bool expected = f->n_experts != MAVERICK_EXPERTS;
    bool still = cJSON_IsFalse(tuned) || (cJSON_IsNumber(tuned) && tuned->valuedouble == 0);
    if (still || cJSON_IsFalse(norm) == expected)
        model_config_fail(f, STATUS_UNSUPPORTED,
                          "use_qk_norm is %s and attn_temperature_tuning %s, expected %s and on, "
                          "which architecture %s takes for granted of %u experts",
                          cJSON_IsFalse(norm) ? "off" : "on", still ? "off" : "on",
                          expected ? "on" : "off", f->arch->name, f->n_experts);
}

static const struct model_folder_map folder = {
    .classes = {"Llama4ForConditionalGeneration", "Llama4ForCausalLM"},
    .names = {folder_names},
    .still_period = 4,
    .write = write_folder,
};

const struct model_arch model_arch_llama4 = {
    .name = "llama4",
    .folder = &folder,
    .nodes = (const struct model_node[]){{MODEL_AT_Q_PROJECTED, "Qcur", "MUL", .other = true},
                                         {MODEL_AT_Q_TEMPERED, "Qcur", "MUL"},
                                         {0}},
    .keys = {keys},
    .gating = KERN_GATE_SIGMOID,
    .normalise = MODEL_NORMALISE_NO,
    .shared = MODEL_SHARED_PLAIN,
    .weigh_inputs = true,
    .read = read,
    .presence = {{MODEL_ALWAYS, "output.weight"}, {MODEL_NEVER, "exp_probs_b.bias"}},
};
