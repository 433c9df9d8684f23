/** The settings of assay perplexity and the table of its options. */
#ifndef CLI_OPTIONS_PERPLEXITY_H
#define CLI_OPTIONS_PERPLEXITY_H

#include "cli/args.h"

/** Indices into the words of the table's choices. */
enum cli_protocol { CLI_PROTOCOL_DEFAULT, CLI_PROTOCOL_FIXED };
enum cli_isa { CLI_ISA_SCALAR, CLI_ISA_AVX2, CLI_ISA_AVX512, CLI_ISA_AUTO };
enum cli_gemm { CLI_GEMM_OWN, CLI_GEMM_OPENBLAS };
enum cli_precision { CLI_PRECISION_EXACT };

struct cli_perplexity {
    /* input */
    const char *model;
    const char *text_file;   /* -f: one final newline is dropped */
    const char *binary_file; /* -bf: as it stands */
    const char *prompt;      /* -p: the text itself */
    /* evaluation */
    int protocol;
    int64_t n_ctx; /* 0: the protocol's default */
    int64_t stride;
    int64_t n_chunks; /* -1: all */
    bool split_lines, parse_special, llama_compat;
    /* model */
    const char *tokenizer_pre;
    bool allow_unknown;
    struct cli_list overrides;
    int rope_scaling; /* -1: as the file says; else none, linear, yarn */
    double rope_scale, rope_freq_base, rope_freq_scale; /* NaN: as the file says */
    int64_t yarn_original_ctx;
    /* NaN or negative: as the file says. */
    double yarn_ext_factor, yarn_attn_factor, yarn_beta_fast, yarn_beta_slow;
    /* output */
    int64_t output_type;
    const char *json_file, *per_token_file;
    bool context_curve, hash_model, quiet;
    /* machine */
    int64_t n_batch;                    /* tokens; 0: chosen by the speed */
    int64_t n_threads, n_threads_batch; /* 0 and below: all processors; the latter wins */
    int isa, gemm, precision;
};

/** As if no option had been given. */
void cli_perplexity_defaults(struct cli_perplexity *settings);

/** Ends with an empty row. */
extern const struct cli_option cli_perplexity_table[];

#endif
