/** assay compare: two results on the same inputs, and whether they differ by more than chance. */
#ifndef CLI_RESULTS_COMPARE_H
#define CLI_RESULTS_COMPARE_H

#include "base/file/atomic_file.h"
#include "cli/results/document.h"
#include "eval/metrics/paired.h"

struct cli_compare_settings {
    int64_t candidates[2]; /* of kld results: which model, from 1; 0: the only one */
    int64_t n_resamples, seed;
    const char *json_file;
};

enum { CLI_MAX_FIGURES = 6, CLI_FIGURE_KLD = 2, CLI_N_TASK_SCORES = 3 };

/** A figure of perplexity or divergence: how it is called and printed. */
struct cli_figure {
    const char *name, *key; /* for people, in JSON */
    double scale;           /* what is printed is the figure times this */
    int n_decimals;
};

/** One of the two results. */
struct cli_compared {
    struct cli_document document;
    struct cli_field field;       /* what is compared: the document, or one of its candidates */
    const char *file, *name, *id; /* of the model; in the document */
    char kv[CLI_KV_LABEL];        /* behind the file's name */
};

/** A comparison. Zero-initialise; release with cli_compare_close. */
struct cli_compare {
    struct cli_compare_settings settings;
    struct cli_compared sides[2]; /* A and B */
    size_t n_windows, n_tokens;   /* perplexity, kld: that both have */
    size_t n_only[2];             /* windows or tasks of one side that the other lacks */
    size_t n_figures;
    const struct cli_figure *figures; /* [n_figures] */
    struct eval_pair_figure values[CLI_MAX_FIGURES];
    double kld_rounding; /* by which rounding may have moved the difference of mean KLDs, or NaN */
    const char *task_kind; /* choice tasks */
    size_t n_tasks;        /* that both have */
    struct eval_pair_counts counts[CLI_N_TASK_SCORES];
    struct eval_mcnemar tests[CLI_N_TASK_SCORES];
};

/** What results call the three scores of choice tasks: "score", "acc", "acc_norm". */
extern const char *const cli_task_scores[CLI_N_TASK_SCORES];

/**
 * Compare what `sides[].document` hold, which must be open.
 * Fails: STATUS_USAGE (results of different inputs: the first difference is named; several
 *        candidates and none chosen; fewer than two windows in common), STATUS_FORMAT (a field
 *        that is missing or of another type), STATUS_NONFINITE, STATUS_MEMORY.
 */
enum status cli_compare_make(struct cli_compare *c, struct status_why *why);
void cli_compare_close(struct cli_compare *c);

/** The first failure of a look-up in either document. */
enum status cli_compare_status(const struct cli_compare *c, struct status_why *why);

/* compare_windows.c and compare_tasks.c: the parts of cli_compare_make. */

/**
 * When everything is told: whether it is a number. Fails: STATUS_NONFINITE (a perplexity that is
 * larger than the largest number, in a result or in a resample; ln(PPL) is finite).
 */
enum status cli_compare_verdict(const struct cli_compare *c, struct status_why *why);
enum status cli_compare_windows(struct cli_compare *c, struct status_why *why);
enum status cli_compare_tasks(struct cli_compare *c, struct status_why *why);

/* compare_report.c */

void cli_compare_print(const struct cli_compare *c);
/** Fails: STATUS_MEMORY. */
enum status cli_compare_write_json(const struct cli_compare *c, struct base_file *file,
                                   struct status_why *why);

#endif
