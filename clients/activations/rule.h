/** Which inputs are rounded to what: one type for all products, or an engine's by weight. */
#ifndef ACTIVATIONS_RULE_H
#define ACTIVATIONS_RULE_H

#include "base/status.h"
#include "clients/activations/types.h"
#include "gguf/gguf.h"

/** The engines, the first of which is meant by "engine" alone. */
#define ACT_EACH_ENGINE(X)                                                                         \
    X(LLAMA_CPU, "engine:llama.cpp-cpu")                                                           \
    X(LLAMA_CUDA, "engine:llama.cpp-cuda")                                                         \
    X(VLLM_NVFP4, "engine:vllm-nvfp4")

enum act_engine {
    ACT_NO_ENGINE,
#define ACT_ENGINE_ID(ENGINE, name) ACT_##ENGINE,
    ACT_EACH_ENGINE(ACT_ENGINE_ID)
#undef ACT_ENGINE_ID
};

struct act_rule {
    enum act_engine engine;
    enum act_type type; /* without an engine */
};

/** The rule of that name, in any case of letters; lives as long as the program. NULL: there is
 * none, and `why` says so. */
const struct act_rule *act_rule_find(const char *name, struct status_why *why);
/** Its name as results have it. */
const char *act_rule_name(const struct act_rule *rule);
/**
 * What the inputs of a product with such a weight of n_cols columns are rounded to.
 * Fails: STATUS_UNSUPPORTED (the engine has no such products; the columns are no whole blocks).
 */
enum status act_rule_type(enum act_type *out, const struct act_rule *rule, enum gguf_type weight,
                          size_t n_cols, struct status_why *why);
/**
 * What the engine rounds queries to, which it multiplies with keys in a cache of that type: as in
 * struct kern_round; F32: they are not rounded.
 */
enum gguf_type act_rule_queries(const struct act_rule *rule, enum gguf_type keys);

#endif
