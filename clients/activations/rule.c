#include "clients/activations/rule.h"

#include <stdio.h>
#include <strings.h>

#define ENGINE_NAME(ENGINE, name) [ACT_##ENGINE] = (name),
static const char *const engines[] = {NULL, ACT_EACH_ENGINE(ENGINE_NAME)};

#define TYPE_RULE(TYPE, type_, name, elems) {.type = ACT_##TYPE},
#define ENGINE_RULE(ENGINE, name)           {.engine = ACT_##ENGINE},
static const struct act_rule rules[] = {ACT_EACH_TYPE(TYPE_RULE) ACT_EACH_ENGINE(ENGINE_RULE)};
enum { N_RULES = sizeof rules / sizeof *rules };

const char *act_rule_name(const struct act_rule *rule)
{
    return rule->engine ? engines[rule->engine] : act_type_name(rule->type);
}

const struct act_rule *act_rule_find(const char *name, struct status_why *why)
{
    char names[256] = "";
    size_t n = 0;
    if (strcasecmp(name, "engine") == 0)
        name = engines[1];
    for (size_t i = 0; i < N_RULES; i++)
        if (strcasecmp(name, act_rule_name(&rules[i])) == 0)
            return &rules[i];
    for (size_t i = 0; i < ACT_N_TYPES; i++)
        n += (size_t)snprintf(names + n, sizeof names - n, "%s, ", act_rule_name(&rules[i]));
    (void)status_fail(why, STATUS_USAGE,
                      "--activations: '%.32s' is no type of activations, expected %sengine, %s, "
                      "%s or %s",
                      name, names, engines[1], engines[2], engines[3]);
    return NULL;
}

/* ACT_N_TYPES: the engine has no products with such weights. */

/** llama.cpp on a CPU: vec_dot_type of its table type_traits_cpu. */
static enum act_type of_llama_cpu(enum gguf_type weight)
{
    switch (weight) {
    case GGUF_TYPE_F32:
        return ACT_F32;
    case GGUF_TYPE_F16:
        return ACT_F16;
    case GGUF_TYPE_BF16:
        return ACT_BF16;
    case GGUF_TYPE_Q4_0:
    case GGUF_TYPE_Q5_0:
    case GGUF_TYPE_Q8_0:
    case GGUF_TYPE_Q1_0:
    case GGUF_TYPE_Q2_0:
    case GGUF_TYPE_IQ4_NL:
    case GGUF_TYPE_MXFP4:
    case GGUF_TYPE_MXFP4_APART:
    case GGUF_TYPE_NVFP4:
    case GGUF_TYPE_NVFP4_APART:
        return ACT_Q8_0;
    case GGUF_TYPE_Q4_1:
    case GGUF_TYPE_Q5_1:
        return ACT_Q8_1;
    default:
        return ACT_Q8_K;
    }
}

/**
 * llama.cpp on a GPU, before Blackwell: mmq_get_q8_1_ds_layout(); what
 * has no such products is multiplied as halves.
 */
static enum act_type of_llama_cuda(enum gguf_type weight)
{
    switch (weight) {
    case GGUF_TYPE_F32:
        return ACT_F32;
    case GGUF_TYPE_BF16:
        return ACT_BF16;
    case GGUF_TYPE_F16:
    case GGUF_TYPE_IQ1_M:
        return ACT_F16;
    case GGUF_TYPE_Q4_0:
    case GGUF_TYPE_Q4_1:
    case GGUF_TYPE_Q5_1:
    case GGUF_TYPE_Q4_K:
    case GGUF_TYPE_Q5_K:
    case GGUF_TYPE_IQ1_S:
        return ACT_Q8_1;
    case GGUF_TYPE_Q2_K:
        return ACT_MMQ_64;
    case GGUF_TYPE_TQ1_0:
    case GGUF_TYPE_TQ2_0:
        return ACT_N_TYPES;
    default:
        return ACT_MMQ;
    }
}

/** vLLM on a checkpoint in NVFP4: what is not quantised is multiplied in the checkpoint's type. */
static enum act_type of_vllm(enum gguf_type weight)
{
    switch (weight) {
    case GGUF_TYPE_F32:
        return ACT_F32;
    case GGUF_TYPE_F16:
        return ACT_F16;
    case GGUF_TYPE_BF16:
        return ACT_BF16;
    case GGUF_TYPE_NVFP4:
    case GGUF_TYPE_NVFP4_APART:
        return ACT_NVFP4;
    case GGUF_TYPE_F8_E4M3:
        return ACT_FP8;
    default:
        return ACT_N_TYPES;
    }
}

/** Whether llama.cpp has the type at all: ik_llama.cpp's it has not, of folders it has those of 4
 * bits. */
static bool is_llamas(enum gguf_type weight)
{
    switch (weight) {
    case GGUF_TYPE_I2_S:
    case GGUF_TYPE_F8_E4M3:
    case GGUF_TYPE_F8_E5M2:
        return false;
    case GGUF_TYPE_MXFP4_APART:
    case GGUF_TYPE_NVFP4_APART:
        return true;
    default:
        return (int)weight < GGUF_FIRST_IK;
    }
}

static enum act_type of_engine(enum act_engine engine, enum gguf_type weight)
{
    if (engine == ACT_VLLM_NVFP4)
        return of_vllm(weight);
    if (!is_llamas(weight))
        return ACT_N_TYPES;
    return engine == ACT_LLAMA_CPU ? of_llama_cpu(weight) : of_llama_cuda(weight);
}

/* llama.cpp's flash attention on a CPU multiplies queries in float32 with F16 keys of a batch, in
   tiles; with all others by the dot product of their type. A GPU decodes a batch's keys to F16. */
enum gguf_type act_rule_queries(const struct act_rule *rule, enum gguf_type keys)
{
    if (rule->engine != ACT_LLAMA_CPU)
        return GGUF_TYPE_F32;
    switch (of_llama_cpu(keys)) {
    case ACT_Q8_0:
    case ACT_Q8_1:
        return GGUF_TYPE_Q8_0;
    case ACT_BF16:
        return GGUF_TYPE_BF16;
    default:
        return GGUF_TYPE_F32;
    }
}

enum status act_rule_type(enum act_type *out, const struct act_rule *rule, enum gguf_type weight,
                          size_t n_cols, struct status_why *why)
{
    *out = rule->engine ? of_engine(rule->engine, weight) : rule->type;
    if (*out == ACT_N_TYPES)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "--activations %s: the engine has no products with weights of %s; "
                           "expected a file that it evaluates, or one type for all products",
                           act_rule_name(rule), gguf_type_name((uint32_t)weight));
    size_t n_elems = act_type_elems(*out);
    if (n_cols % n_elems == 0)
        return STATUS_OK;
    return status_fail(why, STATUS_UNSUPPORTED,
                       "--activations %s: a product has inputs of %zu numbers, expected a multiple "
                       "of %zu, the block of %s; f16, bf16 and fp8 have none",
                       act_rule_name(rule), n_cols, n_elems, act_type_name(*out));
}
