/**
 * The options that commands share, in groups: settings with the table that fills them. A
 * command's own table names a group in a row of type CLI_GROUP.
 */
#ifndef CLI_OPTIONS_COMMON_H
#define CLI_OPTIONS_COMMON_H

#include "cli/args.h"

/** Indices into the words of the tables' choices. */
enum cli_isa { CLI_ISA_SCALAR, CLI_ISA_AVX2, CLI_ISA_AVX512, CLI_ISA_AMX, CLI_ISA_AUTO };
enum cli_gemm { CLI_GEMM_OWN, CLI_GEMM_OPENBLAS };
enum cli_precision { CLI_PRECISION_HIGH, CLI_PRECISION_EXACT, CLI_PRECISION_FAST };

/** Which text, and how it becomes tokens. No heading: rows of "Input". */
struct cli_text_settings {
    const char *text_file;   /* -f: one final newline is dropped */
    const char *binary_file; /* -bf: as it stands */
    const char *prompt;      /* -p: the text itself */
    bool parse_special;
    bool escape; /* -e: escapes in it are what they mean */
};
extern const struct cli_option cli_text_table[];

/** How a model is opened. */
struct cli_model_settings {
    const char *tokenizer_pre;
    bool allow_unknown;
    struct cli_list overrides;
    int rope_scaling; /* -1: as the file says; else none, linear, yarn */
    double rope_scale, rope_freq_base, rope_freq_scale; /* NaN: as the file says */
    int64_t yarn_original_ctx;
    /* NaN or negative: as the file says. */
    double yarn_ext_factor, yarn_attn_factor, yarn_beta_fast, yarn_beta_slow;
};
extern const struct cli_option cli_model_table[];
void cli_model_defaults(struct cli_model_settings *settings);

/** What is written beside the lines. No heading: rows of "Output". Defaults: all zero. */
struct cli_output_settings {
    const char *json_file;
    bool hash_model, quiet;
};
extern const struct cli_option cli_output_table[];

/** What computes. */
struct cli_machine_settings {
    int64_t n_batch;                    /* tokens; 0: chosen by the speed */
    int64_t n_threads, n_threads_batch; /* 0 and below: all processors; the latter wins */
    int isa, gemm, precision;
};
extern const struct cli_option cli_machine_table[];
void cli_machine_defaults(struct cli_machine_settings *settings);
/** The word of --precision. */
const char *cli_precision_name(int precision);

/**
 * llama-perplexity's options that mean nothing here: those that can change no number are
 * ignored, the others refused. No settings: the group's offset does not matter.
 */
extern const struct cli_option cli_foreign_table[];

#endif
