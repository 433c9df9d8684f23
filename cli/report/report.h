/** assay report: a page of results, in one file. */
#ifndef CLI_REPORT_REPORT_H
#define CLI_REPORT_REPORT_H

#include "base/file/atomic_file.h"
#include "cli/results/results.h"

/** A report. Zero-initialise; nothing is owned. */
struct cli_report {
    struct base_file *file;
    struct cli_results *results; /* read, and their boards sorted */
    int64_t n_resamples, seed;   /* of the paired tests */
    bool no_memory;              /* a part could not be made */
};

/**
 * Write the page: page/page.html, with a part at each of its marks.
 * Fails: STATUS_FORMAT (a field of a document that is missing or of another type), STATUS_MEMORY.
 */
enum status cli_report_write(struct cli_report *report, struct status_why *why);

/* The parts. Failed look-ups stay in the documents. Each says what is missing instead of drawing
 * nothing. */

void cli_report_summary(struct cli_report *report);
void cli_report_board(struct cli_report *report);
void cli_report_sizes(struct cli_report *report);
void cli_report_spreads(struct cli_report *report);
void cli_report_positions(struct cli_report *report);
void cli_report_confidence(struct cli_report *report);
void cli_report_worst(struct cli_report *report);
void cli_report_pairs(struct cli_report *report);
void cli_report_tasks(struct cli_report *report);
void cli_report_sweeps(struct cli_report *report);
void cli_report_provenance(struct cli_report *report);

/**
 * One SVG of divergence against size, or of perplexity where nothing has a divergence; for assay
 * table --svg. Only what is comparable with the first run is in it.
 * Fails: STATUS_USAGE (no run has either).
 */
enum status cli_report_size_svg(struct base_file *file, const struct cli_scoreboard *board,
                                struct status_why *why);

/* What the parts share: board.c. */

enum { CLI_RUN_NAME = 112, CLI_METRIC_TEXT = 48 };
/**
 * What a run is called: its quantisation, or its file where another one's is the same. Cut at 24
 * characters.
 */
const char *cli_run_name(char out[CLI_RUN_NAME], const struct cli_scoreboard *board,
                         const struct cli_scoreboard_run *run);
/** Whether a run has a mean divergence. */
bool cli_run_diverges(const struct cli_scoreboard_run *run);
/** A cell with a number of a metric, "-" where it is not known, nan where it is not finite. */
void cli_report_value(struct base_file *file, const struct cli_metric *metric,
                      const struct cli_metric_value *value);
/** A cell with a number of n decimals. */
void cli_report_number(struct base_file *file, double value, int n_decimals);
/** Begin a table in a box that scrolls; classes: of the table; name: what it is. Ended below. */
void cli_report_table(struct base_file *file, const char *classes, const char *name);
void cli_report_table_end(struct base_file *file);
/** Heads of columns, all but the first `n_words` of numbers; `heads`: NULL at the end. */
void cli_report_heads(struct base_file *file, const char *const *heads, size_t n_words);
/** The paragraph that stands where a chart or a table would be: what is missing, in a sentence. */
void cli_report_missing(struct cli_report *report, const char *sentence);

#endif
