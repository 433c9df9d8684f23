/** assay report: a page of results, in one file. */
#ifndef DOCUMENTS_REPORT_REPORT_H
#define DOCUMENTS_REPORT_REPORT_H

#include "base/file/atomic_file.h"
#include "clients/documents/compare/compare.h"
#include "clients/documents/report/shared/models.h"
#include "clients/documents/report/shared/table.h"
#include "clients/documents/results/results.h"

enum { DOC_MOST_PARTS = 24 };

/** A report. Zero-initialise; nothing is owned. */
struct doc_report {
    struct base_file *file;
    struct doc_results *results; /* read, and their boards sorted */
    int64_t n_resamples, seed;   /* of the paired tests */
    int64_t n_context;           /* tokens of a cache that counts as size; 0: weights alone */
    bool no_memory;              /* a part could not be made */
    struct doc_unit unit;        /* of sizes; doc_report_write chooses it */
    const char *missing[DOC_MOST_PARTS]; /* what results do not have, a sentence each */
    size_t n_missing;
    struct {
        char *bytes;
        size_t n_bytes;
    } sections[DOC_MOST_PARTS]; /* what stands in each, while a page is written */
};

/**
 * Write the page: page/page.html, with a part at each of its marks.
 * Fails: STATUS_FORMAT (a field of a document that is missing or of another type), STATUS_MEMORY.
 */
enum status doc_report_write(struct doc_report *report, struct status_why *why);

/* The parts. Failed look-ups stay in the documents. A section that has nothing to show writes
 * nothing and says what is missing. */

void doc_report_title(struct doc_report *report);
void doc_report_answer(struct doc_report *report);
void doc_report_notes(struct doc_report *report);
void doc_report_board(struct doc_report *report);
void doc_report_sizes(struct doc_report *report);
void doc_report_speeds(struct doc_report *report);
void doc_report_spreads(struct doc_report *report);
void doc_report_positions(struct doc_report *report);
void doc_report_confidence(struct doc_report *report);
void doc_report_categories(struct doc_report *report);
void doc_report_worst(struct doc_report *report);
void doc_report_pairs(struct doc_report *report);
void doc_report_tasks(struct doc_report *report);
void doc_report_sweeps(struct doc_report *report);
void doc_report_experts(struct doc_report *report);
void doc_report_put_missing(struct doc_report *report);
void doc_report_provenance(struct doc_report *report);

/**
 * One SVG of divergence against size, or of perplexity where nothing has a divergence; for assay
 * table --svg. Only what is comparable with the first run is in it. The runs get their numbers.
 * Fails: STATUS_USAGE (no run has either).
 */
enum status doc_report_size_svg(struct base_file *file, struct doc_scoreboard *board,
                                struct status_why *why);

/* What the parts share: board.c. */

/** Say what is missing, in a sentence, a constant; the section of such sentences has it. */
void doc_report_missing(struct doc_report *report, const char *sentence);

/** pairs.c: compare b with a on the windows or tasks that both have. Fails: as doc_compare_make. */
enum status doc_report_compare(struct doc_compare *c, const struct doc_report *report,
                               const struct doc_scoreboard_run *a,
                               const struct doc_scoreboard_run *b, struct status_why *why);

#endif
