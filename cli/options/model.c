/* The options that name a model and say how it is opened. */
#include <float.h>
#include <math.h>

#include "cli/options/common.h"
#include "clients/activations/rule.h"

enum { ANY = INT32_MAX };

#define MODEL(member) offsetof(struct cli_model_settings, member)

void cli_model_defaults(struct cli_model_settings *settings)
{
    const double not_given = (double)NAN;
    *settings = (struct cli_model_settings){
        .rope_scaling = -1,
        .rope_scale = not_given,
        .rope_freq_base = not_given,
        .rope_freq_scale = not_given,
        .yarn_ext_factor = not_given,
        .yarn_attn_factor = not_given,
        .yarn_beta_fast = not_given,
        .yarn_beta_slow = not_given,
    };
}

void cli_model_plain(struct cli_model_settings *settings)
{
    settings->cache_k = settings->cache_v = (struct cli_kv_list){0};
    settings->experts_used = 0;
}

/* The model computes with float32: what has no positive float32 is refused, not rounded away. */
enum status cli_model_check(const struct cli_model_settings *s, struct status_why *why)
{
    const struct {
        const char *name;
        double value;
        enum {
            GIVEN,
            ZERO,
            NEGATIVE
        } as_file; /* llama-perplexity's way to say: as the file says */
    } numbers[] = {
        {"--rope-scale", s->rope_scale, GIVEN},
        {"--rope-freq-base", s->rope_freq_base, ZERO},
        {"--rope-freq-scale", s->rope_freq_scale, ZERO},
        {"--yarn-attn-factor", s->yarn_attn_factor, NEGATIVE},
        {"--yarn-beta-fast", s->yarn_beta_fast, NEGATIVE},
        {"--yarn-beta-slow", s->yarn_beta_slow, NEGATIVE},
    };
    const double least = (double)FLT_MIN, most = 1 / least;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        double value = numbers[i].value;
        bool as_the_file_says = isnan(value) || (value == 0 && numbers[i].as_file == ZERO) ||
                                (value < 0 && numbers[i].as_file == NEGATIVE);
        if (!as_the_file_says && !(value >= least && value <= most))
            return status_fail(why, STATUS_USAGE, "%s: %g is out of range, expected %g to %g",
                               numbers[i].name, value, least, most);
    }
    if (s->yarn_ext_factor > most)
        return status_fail(why, STATUS_USAGE, "--yarn-ext-factor: %g is out of range",
                           s->yarn_ext_factor);
    if (!isnan(s->rope_scale) && !isnan(s->rope_freq_scale))
        return status_fail(why, STATUS_USAGE,
                           "--rope-scale and --rope-freq-scale say the same thing; give one");
    return cli_kv_check(s, why);
}

const struct cli_option cli_model_file_options[] = {
    {"-m --model", CLI_TEXT, "FILE",
     "the model: a GGUF file, any one of a split model; -m may be left out",
     .env = "LLAMA_ARG_MODEL", .required = true, .bare = true, .usual = true},
    {0},
};

const struct cli_option cli_label_options[] = {
    {"--label", CLI_EACH, "NAME",
     "what results call the model (default: its file's name, without what all names begin and end "
     "with); the n-th label is that of the n-th model",
     0},
    {0},
};

enum status cli_labels_check(const struct cli_list *labels, size_t n, struct status_why *why)
{
    for (size_t i = 0; i < labels->n; i++)
        if (!*labels->items[i])
            return status_fail(why, STATUS_USAGE, "--label: label %zu is empty; expected a name",
                               i + 1);
    return labels->n == 0 || labels->n == n
               ? STATUS_OK
               : status_fail(why, STATUS_USAGE,
                             "--label: there %s %zu label%s for %zu model%s; give one for each "
                             "model, in their order, or none",
                             labels->n == 1 ? "is" : "are", labels->n, status_plural(labels->n), n,
                             status_plural(n));
}

const struct cli_option cli_pretokenizer_options[] = {
    {"--tokenizer-pre", CLI_TEXT, "NAME", "use this pre-tokeniser instead of the file's"},
    {0},
};

const struct cli_option cli_weight_options[] = {
    {.type = CLI_HEADING, .help = "Model"},
    {.type = CLI_GROUP, .group = cli_pretokenizer_options, .offset = MODEL(tokenizer_pre)},
    {"--tokenizer", CLI_TEXT, "FILE",
     "give a published folder the tokens of this GGUF file of the same model, in place of its own",
     MODEL(tokenizer)},
    {"--allow-unknown", CLI_ON, NULL,
     "go on although the file has tensors or keys that are not understood", MODEL(allow_unknown)},
    {"-okv --override-kv", CLI_LIST, "KEY=TYPE:VALUE,...",
     "replace metadata; TYPE is int, float, bool or str", MODEL(overrides)},
    {"--rope-scaling", CLI_CHOICE, "NAME", "none, linear or yarn (default: the file's)",
     MODEL(rope_scaling), .choices = "none linear yarn", .env = "LLAMA_ARG_ROPE_SCALING_TYPE"},
    {"--rope-scale", CLI_NUMBER, "X", "stretch the context by this factor", MODEL(rope_scale),
     .env = "LLAMA_ARG_ROPE_SCALE"},
    {"--rope-freq-base", CLI_NUMBER, "X", "base of the rotary frequencies (default: 0, the file's)",
     MODEL(rope_freq_base), .env = "LLAMA_ARG_ROPE_FREQ_BASE"},
    {"--rope-freq-scale", CLI_NUMBER, "X", "stretch the context by 1/X (default: 0, the file's)",
     MODEL(rope_freq_scale), .env = "LLAMA_ARG_ROPE_FREQ_SCALE"},
    {"--yarn-orig-ctx", CLI_COUNT, "N", "YaRN: context of the training (default: 0, the file's)",
     MODEL(yarn_original_ctx), 0, ANY, .env = "LLAMA_ARG_YARN_ORIG_CTX"},
    {"--yarn-ext-factor", CLI_NUMBER, "X", "YaRN: extrapolation mix (default: -1, the file's)",
     MODEL(yarn_ext_factor), .env = "LLAMA_ARG_YARN_EXT_FACTOR"},
    {"--yarn-attn-factor", CLI_NUMBER, "X", "YaRN: attention magnitude (default: the file's)",
     MODEL(yarn_attn_factor), .env = "LLAMA_ARG_YARN_ATTN_FACTOR"},
    {"--yarn-beta-slow", CLI_NUMBER, "X", "YaRN: high correction dimension (default: the file's)",
     MODEL(yarn_beta_slow), .env = "LLAMA_ARG_YARN_BETA_SLOW"},
    {"--yarn-beta-fast", CLI_NUMBER, "X", "YaRN: low correction dimension (default: the file's)",
     MODEL(yarn_beta_fast), .env = "LLAMA_ARG_YARN_BETA_FAST"},
    {0},
};

static const void *find_rule(const char *name, struct status_why *why)
{
    return act_rule_find(name, why);
}

const struct cli_option cli_activations_options[] = {
    {"--activations", CLI_NAMED, "TYPE",
     "round the inputs of products, as the engine does that is to be understood: f16, bf16, q8_0, "
     "q8_1, q8_k, mmq, mmq-64, fp8, fp8-tensor, mxfp8, mxfp4 or nvfp4; or by the types of weights: "
     "engine:llama.cpp-cpu (also: engine), engine:llama.cpp-cuda, engine:vllm-nvfp4. A base is "
     "never rounded. On the CPU only; --precision exact adds nothing to it",
     .find = find_rule},
    {0},
};

const struct cli_option cli_model_options[] = {
    {.type = CLI_GROUP, .group = cli_weight_options},
    {"-ctk --cache-type-k --ctk", CLI_KV, "TYPE",
     "round keys as a cache of this type holds them: f32 (default: not rounded), f16, bf16, q8_0, "
     "q4_0, q4_1, iq4_nl, q5_0, q5_1, ik_llama.cpp's q6_0 and q8_kv, vLLM's fp8_e4m3, fp8_e5m2 "
     "(also with a scale of the tensor: fp8_e4m3@0.02, or what the first window gives each layer: "
     "fp8_e4m3@calibrated), nvfp4 and, for latent attention, fp8_ds_mla, or mxfp8. Layers that "
     "have another type follow it, and the last that fits counts: q8_0,layers "
     "0-3:f16,windows:q4_0; full means the layers without a window, indexer the keys of an "
     "indexer, which are not rounded otherwise. assay kld takes several, with , between them: each "
     "is a candidate. The base is never rounded",
     MODEL(cache_k), .env = "LLAMA_ARG_CACHE_TYPE_K"},
    {"-ctv --cache-type-v --ctv", CLI_KV, "TYPE",
     "round values in the same way; of several types, the first goes with the first of -ctk",
     MODEL(cache_v), .env = "LLAMA_ARG_CACHE_TYPE_V"},
    {"--no-kv-rotation", CLI_ON, NULL,
     "do not rotate heads before -ctk and -ctv round them (default: they are rotated where "
     "llama.cpp's caches rotate them)",
     MODEL(no_kv_rotation)},
    {"--experts-used", CLI_COUNT, "N",
     "send each token through N experts of a mixture (default: 0, as many as the file says). The "
     "base always takes as many as its file says",
     MODEL(experts_used), 0, 1024},
    {0},
};

const struct cli_option cli_load_options[] = {
    {.type = CLI_GROUP,
     .group = cli_model_options,
     .offset = offsetof(struct cli_evaluate_settings, load)},
    {.type = CLI_GROUP,
     .group = cli_activations_options,
     .offset = offsetof(struct cli_evaluate_settings, machine.activations)},
    {0},
};
