/*
 * Options that several commands share. llama-perplexity's keep its meaning and all of its
 * spellings, in three kinds: implemented; unable to change a number here, therefore
 * accepted and ignored; able to, and not implemented, therefore refused.
 */
#include "cli/options_common.h"

#include <math.h>

enum { ANY = INT32_MAX };

#define TEXT(member)    offsetof(struct cli_text_settings, member)
#define MODEL(member)   offsetof(struct cli_model_settings, member)
#define OUTPUT(member)  offsetof(struct cli_output_settings, member)
#define MACHINE(member) offsetof(struct cli_machine_settings, member)

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

void cli_machine_defaults(struct cli_machine_settings *settings)
{
    *settings = (struct cli_machine_settings){.isa = CLI_ISA_AUTO};
}

const char *cli_precision_name(int precision)
{
    static const char *const names[] = {
        [CLI_PRECISION_HIGH] = "high",
        [CLI_PRECISION_EXACT] = "exact",
        [CLI_PRECISION_FAST] = "fast",
    };
    return names[precision];
}

const struct cli_option cli_text_table[] = {
    {.names = "-f --file",
     CLI_TEXT,
     "FILE",
     "the text, without its last newline if it ends with one; - reads standard input",
     TEXT(text_file)},
    {.names = "-bf --binary-file",
     CLI_TEXT,
     "FILE",
     "the text, its last newline included",
     TEXT(binary_file)},
    {.names = "-p --prompt", CLI_TEXT, "TEXT", "the text itself", TEXT(prompt)},
    {.names = "--parse-special",
     CLI_ON,
     NULL,
     "take names of control tokens in the text as those tokens (default: as plain text)",
     TEXT(parse_special)},
    {.names = "-e --escape",
     CLI_ON,
     NULL,
     "take \\n, \\r, \\t, \\', \\\", \\\\ and \\xHH in the text for what they mean",
     TEXT(escape)},
    {.names = "--no-escape", CLI_OFF, NULL, "leave them as they are (default)", TEXT(escape)},
    {0},
};

const struct cli_option cli_model_table[] = {
    {.type = CLI_HEADING, .help = "Model"},
    {.names = "--tokenizer-pre",
     CLI_TEXT,
     "NAME",
     "use this pre-tokeniser instead of the file's",
     MODEL(tokenizer_pre)},
    {.names = "--allow-unknown",
     CLI_ON,
     NULL,
     "go on although the file has tensors or keys that are not understood",
     MODEL(allow_unknown)},
    {.names = "--override-kv",
     CLI_LIST,
     "KEY=TYPE:VALUE,...",
     "replace metadata; TYPE is int, float, bool or str",
     MODEL(overrides)},
    {.names = "--rope-scaling",
     CLI_CHOICE,
     "NAME",
     "none, linear or yarn (default: the file's)",
     MODEL(rope_scaling),
     .choices = "none linear yarn",
     .env = "LLAMA_ARG_ROPE_SCALING_TYPE"},
    {.names = "--rope-scale",
     CLI_NUMBER,
     "X",
     "stretch the context by this factor",
     MODEL(rope_scale),
     .env = "LLAMA_ARG_ROPE_SCALE"},
    {.names = "--rope-freq-base",
     CLI_NUMBER,
     "X",
     "base of the rotary frequencies (default: the file's)",
     MODEL(rope_freq_base),
     .env = "LLAMA_ARG_ROPE_FREQ_BASE"},
    {.names = "--rope-freq-scale",
     CLI_NUMBER,
     "X",
     "stretch the context by 1/X",
     MODEL(rope_freq_scale),
     .env = "LLAMA_ARG_ROPE_FREQ_SCALE"},
    {.names = "--yarn-orig-ctx",
     CLI_COUNT,
     "N",
     "YaRN: context of the training (default: 0, the file's)",
     MODEL(yarn_original_ctx),
     0,
     ANY,
     .env = "LLAMA_ARG_YARN_ORIG_CTX"},
    {.names = "--yarn-ext-factor",
     CLI_NUMBER,
     "X",
     "YaRN: extrapolation mix (default: -1, the file's)",
     MODEL(yarn_ext_factor),
     .env = "LLAMA_ARG_YARN_EXT_FACTOR"},
    {.names = "--yarn-attn-factor",
     CLI_NUMBER,
     "X",
     "YaRN: attention magnitude (default: the file's)",
     MODEL(yarn_attn_factor),
     .env = "LLAMA_ARG_YARN_ATTN_FACTOR"},
    {.names = "--yarn-beta-slow",
     CLI_NUMBER,
     "X",
     "YaRN: high correction dimension (default: the file's)",
     MODEL(yarn_beta_slow),
     .env = "LLAMA_ARG_YARN_BETA_SLOW"},
    {.names = "--yarn-beta-fast",
     CLI_NUMBER,
     "X",
     "YaRN: low correction dimension (default: the file's)",
     MODEL(yarn_beta_fast),
     .env = "LLAMA_ARG_YARN_BETA_FAST"},

    {0},
};

const struct cli_option cli_output_table[] = {
    {.names = "--json",
     CLI_TEXT,
     "FILE",
     "write the result, with every setting, as JSON; - is standard output, and the lines then go "
     "to standard error",
     OUTPUT(json_file)},
    {.names = "--hash-model",
     CLI_ON,
     NULL,
     "name the model in the result by the SHA-256 of all of its bytes, not only of its header and "
     "the "
     "beginnings of its tensors",
     OUTPUT(hash_model)},
    {.names = "-q --quiet", CLI_ON, NULL, "no progress on standard error", OUTPUT(quiet)},
    {0},
};

const struct cli_option cli_machine_table[] = {
    {.type = CLI_HEADING,
     .help =
         "Machine (no result depends on these, except on --gemm openblas, and on --precision and "
         "--isa where there is AMX)"},
    {.names = "-b --batch-size",
     CLI_COUNT,
     "N",
     "tokens evaluated together, rounded up to whole windows (default: as many as take about "
     "ten seconds)",
     MACHINE(n_batch),
     1,
     ANY,
     .env = "LLAMA_ARG_BATCH"},
    {.names = "-t --threads",
     CLI_COUNT,
     "N",
     "threads (default: one for each processor)",
     MACHINE(n_threads),
     -ANY,
     ANY,
     .env = "LLAMA_ARG_THREADS"},
    {.names = "-tb --threads-batch",
     CLI_COUNT,
     "N",
     "the same; wins over -t",
     MACHINE(n_threads_batch),
     -ANY,
     ANY},
    {.names = "--isa",
     CLI_CHOICE,
     "NAME",
     "use no instruction set above this one: scalar, avx2, avx512, amx or auto (default)",
     MACHINE(isa),
     .choices = "scalar avx2 avx512 amx auto",
     .env = "ASSAY_ISA"},
    {.names = "--gemm",
     CLI_CHOICE,
     "NAME",
     "own: matrix products with the same bits everywhere (default); openblas: OpenBLAS's, whose "
     "bits depend on its version, the threads and the batch",
     MACHINE(gemm),
     .choices = "own openblas"},
    {.names = "--precision",
     CLI_CHOICE,
     "NAME",
     "of matrix products. high: as faithful as float32, with AMX from triples of bfloat16 "
     "(default); exact: float32, the same bits on every machine; fast: with AMX one bfloat16 "
     "product. Without AMX all three are exact",
     MACHINE(precision),
     .choices = "high exact fast",
     .env = "ASSAY_PRECISION"},

    {0},
};
