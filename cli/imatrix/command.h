/** assay imatrix: importance matrices of a model, collected from a text. */
#ifndef CLI_IMATRIX_COMMAND_H
#define CLI_IMATRIX_COMMAND_H

#include "cli/evaluate.h"
#include "cli/input/windows.h"
#include "eval/metrics.h"
#include "imatrix/units.h"

/** Indices into the words of --output-format. */
enum cli_imatrix_format { CLI_IMATRIX_GGUF, CLI_IMATRIX_DAT };

struct cli_imatrix_settings {
    const char *model, *out_file;
    struct cli_text_settings text;
    struct cli_window_settings windows;
    struct cli_evaluate_settings evaluate;
    int format;
    bool process_output, no_ppl;
};

struct cli_imatrix {
    struct cli_evaluation e;
    const struct cli_imatrix_settings *settings;
    struct cli_model model;
    struct cli_windows windows;
    struct imat_collector *collector;
    struct imat_units units;
    struct imat_matrix matrix; /* after the run */
    struct eval_perplexity_result result;
};

/** A matrix of a stack with fewer rows is one of those that are named. */
enum { CLI_IMATRIX_FEW_ROWS = 32 };

/** The whole of it. Fails: as cli_evaluate. */
enum status cli_imatrix_run(const struct cli_imatrix_settings *settings, struct status_why *why);

/** Its rows: of the matrices of a stack the fewest, the most, and how many have few of them. */
struct cli_imatrix_rows {
    uint64_t least, most, n_few, n_none;
};
struct cli_imatrix_rows cli_imatrix_rows(const struct imat_entry *entry);

extern const struct cli_lines cli_imatrix_lines;     /* text.c */
extern const struct cli_members cli_imatrix_members; /* json.c */

#endif
