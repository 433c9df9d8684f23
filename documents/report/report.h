/** assay report: a page of results, in one file. */
#ifndef DOCUMENTS_REPORT_REPORT_H
#define DOCUMENTS_REPORT_REPORT_H

#include "base/file/atomic_file.h"
#include "documents/results/results.h"

/** A report. Zero-initialise; nothing is owned. */
struct doc_report {
    struct base_file *file;
    struct doc_results *results; /* read, and their boards sorted */
    int64_t n_resamples, seed;   /* of the paired tests */
    bool no_memory;              /* a part could not be made */
};

/**
 * Write the page: page/page.html, with a part at each of its marks.
 * Fails: STATUS_FORMAT (a field of a document that is missing or of another type), STATUS_MEMORY.
 */
enum status doc_report_write(struct doc_report *report, struct status_why *why);

/* The parts. Failed look-ups stay in the documents. Each says what is missing instead of drawing
 * nothing. */

void doc_report_summary(struct doc_report *report);
void doc_report_board(struct doc_report *report);
void doc_report_sizes(struct doc_report *report);
void doc_report_spreads(struct doc_report *report);
void doc_report_positions(struct doc_report *report);
void doc_report_confidence(struct doc_report *report);
void doc_report_worst(struct doc_report *report);
void doc_report_pairs(struct doc_report *report);
void doc_report_tasks(struct doc_report *report);
void doc_report_sweeps(struct doc_report *report);
void doc_report_provenance(struct doc_report *report);

/**
 * One SVG of divergence against size, or of perplexity where nothing has a divergence; for assay
 * table --svg. Only what is comparable with the first run is in it.
 * Fails: STATUS_USAGE (no run has either).
 */
enum status doc_report_size_svg(struct base_file *file, const struct doc_scoreboard *board,
                                struct status_why *why);

/* What the parts share: board.c. */

enum { DOC_METRIC_TEXT = 48 };
/** The label of a run in 24 columns, for a chart. */
const char *doc_run_name(struct base_label *out, const struct doc_scoreboard_run *run);
/** Whether a run has a mean divergence. */
bool doc_run_diverges(const struct doc_scoreboard_run *run);
/** A cell with a number of a metric, "-" where it is not known, nan where it is not finite. */
void doc_report_value(struct base_file *file, const struct doc_metric *metric,
                      const struct doc_metric_value *value);
/** A cell with a number of n decimals. */
void doc_report_number(struct base_file *file, double value, int n_decimals);
/** Begin a table in a box that scrolls; classes: of the table; name: what it is. Ended below. */
void doc_report_table(struct base_file *file, const char *classes, const char *name);
void doc_report_table_end(struct base_file *file);
/** Begin a figure in a box that scrolls; title: what it shows. */
void doc_report_figure(struct base_file *file, const char *title);
/** Begin a table of numbers that is folded up below a chart: heads as below, two of words. */
void doc_report_numbers(struct base_file *file, const char *title, const char *name,
                        const char *const *heads);
void doc_report_numbers_end(struct base_file *file);
/** Begin a row: its head, and another text. */
void doc_report_row(struct base_file *file, const char *head, const char *text);
/** Heads of columns, all but the first `n_words` of numbers; `heads`: NULL at the end. */
void doc_report_heads(struct base_file *file, const char *const *heads, size_t n_words);
/** The paragraph that stands where a chart or a table would be: what is missing, in a sentence. */
void doc_report_missing(struct doc_report *report, const char *sentence);

#endif
