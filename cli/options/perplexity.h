/** The settings of assay perplexity and the list of its options. */
#ifndef CLI_OPTIONS_PERPLEXITY_H
#define CLI_OPTIONS_PERPLEXITY_H

#include "base/buffer.h"
#include "cli/options/common.h"
#include "eval/reference.h"

/** Index into the words of the option's choice. */
enum cli_protocol { CLI_PROTOCOL_DEFAULT, CLI_PROTOCOL_FIXED };

enum cli_record_format { CLI_RECORD_LOGITS, CLI_RECORD_COMPACT };

struct cli_perplexity_settings {
    const char *model;
    struct cli_list labels; /* one, or none */
    struct cli_text_settings text;
    /* evaluation */
    int protocol;
    struct cli_window_settings windows; /* n_ctx -1: the protocol's default */
    int64_t stride;
    bool kl_divergence;    /* compare with base_file, else record it */
    const char *base_file; /* NULL: neither */
    bool only_new; /* it is recorded where nothing is: who forgot kl_divergence has it still */
    /* assay record: what base_file is to be; others record CLI_RECORD_LOGITS */
    bool is_record;
    int record_format;
    int hidden; /* enum eval_compact_kind */
    bool head_by_path;
    bool split_lines, llama_compat;
    struct base_buffer *rows; /* for the table of several contexts; NULL: none is wanted */
    bool hellaswag, winogrande, multiple_choice, mc2;
    const char *task_labels; /* a file of right choices; NULL: the tasks have them */
    int64_t hellaswag_tasks, winogrande_tasks, multiple_choice_tasks; /* -1: not given; 0: all */
    /* output */
    int64_t output_type;
    const char *per_token_file, *per_task_file;
    struct cli_curve_settings curve;
    struct cli_evaluate_settings evaluate;
};

/** As if no option had been given. settings: a struct cli_perplexity_settings. */
void cli_perplexity_defaults(void *settings);

/** What of the settings takes one text only, for a sentence; NULL: documents are allowed. */
const char *cli_perplexity_single(const struct cli_perplexity_settings *settings);

/** Ends with an empty row. */
extern const struct cli_option cli_perplexity_options[];

#endif
