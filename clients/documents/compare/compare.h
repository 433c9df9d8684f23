/** Two results on the same inputs, and whether they differ by more than chance. */
#ifndef DOCUMENTS_COMPARE_COMPARE_H
#define DOCUMENTS_COMPARE_COMPARE_H

#include "base/file/atomic_file.h"
#include "base/text/labels.h"
#include "clients/documents/compare/paired.h"
#include "clients/documents/results/document.h"

struct doc_compare_settings {
    const char *candidates[2]; /* of kld results: which model, by its name in a table or its number
                                  from 1; NULL: the only one */
    int64_t n_resamples, seed;
};

enum { DOC_MAX_FIGURES = 6, DOC_FIGURE_KLD = 2, DOC_N_TASK_SCORES = 3 };

/** A figure of perplexity or divergence: how it is called and printed. */
struct doc_figure {
    const char *name, *key; /* for people, in JSON */
    double scale;           /* what is printed is the figure times this */
    int n_decimals;
};

/** One of the two results. */
struct doc_compared {
    struct doc_document document;
    struct base_field field;      /* what is compared: the document, or one of its candidates */
    const char *file, *name, *id; /* of the model; in the document */
    struct base_label label;      /* what the model is called beside the other */
    char kv[DOC_KV_LABEL];        /* follows the label */
};

/** A comparison. Zero-initialise; release with doc_compare_close. */
struct doc_compare {
    struct doc_compare_settings settings;
    struct doc_compared sides[2]; /* A and B */
    size_t n_windows, n_tokens;   /* perplexity, kld: that both have */
    size_t n_only[2];             /* windows or tasks of one side that the other lacks */
    size_t n_figures;
    const struct doc_figure *figures; /* [n_figures] */
    struct doc_pair_figure values[DOC_MAX_FIGURES];
    double kld_rounding; /* by which rounding may have moved the difference of mean KLDs, or NaN */
    const char *task_kind; /* choice tasks */
    size_t n_tasks;        /* that both have */
    struct doc_pair_counts counts[DOC_N_TASK_SCORES];
    struct doc_mcnemar tests[DOC_N_TASK_SCORES];
};

/** What results call the three scores of choice tasks: "score", "acc", "acc_norm". */
extern const char *const doc_task_scores[DOC_N_TASK_SCORES];

/**
 * Two divergences must be from one base, and both they or two perplexities be computed with the
 * same settings; how much was evaluated may differ. Fails: as doc_equal.
 */
enum status doc_computed_alike(struct base_field a, struct base_field b, struct status_why *why);

/**
 * Compare what `sides[].document` hold, which must be open.
 * Fails: STATUS_USAGE (results of different inputs: the first difference is named; several
 *        candidates and none chosen; fewer than two windows in common), STATUS_FORMAT (a field
 *        that is missing or of another type), STATUS_NONFINITE, STATUS_MEMORY.
 */
enum status doc_compare_make(struct doc_compare *c, struct status_why *why);
void doc_compare_close(struct doc_compare *c);

/**
 * When everything is told: whether it is a number. Fails: STATUS_NONFINITE (a perplexity that is
 * larger than the largest number, in a result or in a resample; ln(PPL) is finite).
 */
enum status doc_compare_verdict(const struct doc_compare *c, struct status_why *why);

/* compare_windows.c and compare_tasks.c: the parts of doc_compare_make. */

/** The first failure of a look-up in either document. */
static inline enum status doc_compare_status(const struct doc_compare *c, struct status_why *why)
{
    enum status status = doc_status(&c->sides[0].document, why);
    return status ? status : doc_status(&c->sides[1].document, why);
}
enum status doc_compare_windows(struct doc_compare *c, struct status_why *why);
enum status doc_compare_tasks(struct doc_compare *c, struct status_why *why);

#endif
