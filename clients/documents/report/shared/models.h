/** How the parts of a report tell its models apart: names, colours, units of size. */
#ifndef DOCUMENTS_REPORT_SHARED_MODELS_H
#define DOCUMENTS_REPORT_SHARED_MODELS_H

#include "clients/documents/results/scoreboard.h"

enum { DOC_RUN_NAME = BASE_LABEL_BYTES, DOC_MARK = 16 };

/** The label of a run in 24 columns, for a chart or a sentence. */
const char *doc_run_name(char out[DOC_RUN_NAME], const struct doc_scoreboard_run *run);

/** Whether two runs are of one model, with the same cache. */
bool doc_same_model(const struct doc_scoreboard_run *a, const struct doc_scoreboard_run *b);

/** Whether a is no larger than b, has no larger figure (less is better), and one of both is less.
 */
bool doc_run_beats(const struct doc_scoreboard_run *a, double figure_a,
                   const struct doc_scoreboard_run *b, double figure_b);

/** Whether a run has a mean divergence. */
bool doc_run_diverges(const struct doc_scoreboard_run *run);

/**
 * Give each run the number of its model, the same for all of its runs; SIZE_MAX to bases. It
 * chooses colour, dashes and the form of marks.
 * before: a board that has its numbers; its models keep them on this one, too; or NULL.
 */
void doc_runs_number(struct doc_scoreboard *board, const struct doc_scoreboard *before);
/** Classes of that number (page/chart.css): colour, dashes, form of marks. */
const char *doc_mark_classes(char out[DOC_MARK], size_t number);

/** One unit for all sizes of a report. */
struct doc_unit {
    const char *name;
    double bytes;
    int n_decimals; /* that a size is shown with */
};
/** GiB where the largest model of the boards has half of one, else MiB. tasks: or NULL. */
struct doc_unit doc_unit_of(const struct doc_scoreboard *texts, const struct doc_scoreboard *tasks);

/**
 * Whether two runs saw the same tokens; for a metric of divergence they also need the same base,
 * and those of a race may have left it after fewer windows.
 * metric: DOC_METRIC_PPL or DOC_METRIC_KLD.
 */
bool doc_runs_comparable(const struct doc_scoreboard_run *a, const struct doc_scoreboard_run *b,
                         size_t metric);
/** Whether no earlier run that has the metric is comparable with this one, which has it. */
bool doc_run_is_head(const struct doc_scoreboard *board, size_t run, size_t metric);

#endif
