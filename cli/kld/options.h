/** The settings of assay kld and the table of its options. */
#ifndef CLI_KLD_OPTIONS_H
#define CLI_KLD_OPTIONS_H

#include "cli/options/common.h"

struct cli_kld_settings {
    const char *base;
    struct cli_list models; /* the candidates */
    struct cli_text_settings text;
    /* evaluation */
    struct cli_window_settings windows; /* n_ctx 0: what is usual, or what the base has */
    bool js, llama_compat;
    struct cli_model_settings load;
    /* output */
    const char *per_token_file;
    struct cli_divergence_settings divergence;
    struct cli_evaluate_settings evaluate;
};

/** As if no option had been given. settings: a struct cli_kld_settings. */
void cli_kld_defaults(void *settings);

/** Ends with an empty row. */
extern const struct cli_option cli_kld_options[];

#endif
