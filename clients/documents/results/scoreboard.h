/** Scoreboards made of result documents, as in llama.cpp's README. */
#ifndef DOCUMENTS_RESULTS_SCOREBOARD_H
#define DOCUMENTS_RESULTS_SCOREBOARD_H

#include "base/text/labels.h"
#include "clients/documents/results/document.h"
#include "clients/documents/results/metric.h"

/** Rows of doc_kld_metrics that are asked for by name, and room for the values of all. */
enum { DOC_METRIC_PPL = 0, DOC_METRIC_KLD = 8, DOC_MOST_METRICS = 64 };
/** Metrics of files that llama-bench measured (speeds.h), after the others. */
enum doc_speed_kind { DOC_PROMPT, DOC_GENERATION, DOC_N_SPEEDS };
/** kind: an enum doc_speed_kind. */
size_t doc_speed_metric(size_t kind);
enum { DOC_SPEEDS_TEXT = 800 };

struct doc_metric_value {
    bool known; /* false: this run does not have it */
    double value, error;
};

/** A model in a result. The texts point into its document. */
struct doc_scoreboard_run {
    struct base_field from; /* the document, or the candidate in it */
    const char *file, *name, *id, *imatrix;
    const char *given;                           /* its label in the document, or NULL */
    char label[BASE_LABEL_BYTES + DOC_KV_LABEL]; /* see doc_scoreboard_label; else "" */
    char kv[DOC_KV_LABEL]; /* what keys and values were rounded to: " K Q8_0", or "" */
    char quantisation[64 + DOC_KV_LABEL]; /* with kv: "Q4_K_M K Q8_0" */
    const char *task;                     /* the kind of choice tasks, or "" */
    struct base_field model;              /* what the document says of it */
    double n_bytes, bits_per_weight;
    size_t n_windows, n_tokens; /* that its divergence is of; 0: the document does not say */
    bool fewer;                 /* of them than others of its document: it left a race */
    bool is_base;
    size_t number; /* of its model on a page: documents/report/shared/models.h */
    struct doc_metric_value values[DOC_MOST_METRICS];
};

/** Zero-initialise; release with doc_scoreboard_free. Must not outlive the documents. */
struct doc_scoreboard {
    struct doc_scoreboard_run *runs;
    size_t n, capacity;
    bool of_tasks; /* of choice tasks, which share no metric with the others */
    bool new_type; /* shown with the columns that are asked of a new quantisation type */
    bool has_speeds;
    char speeds_about[DOC_SPEEDS_TEXT]; /* what was measured */
};

/** What the rounding of products may have moved its mean divergence by; NaN: not known. */
double doc_run_rounding(const struct doc_scoreboard_run *run);
/** Whether a run is of this document. */
bool doc_run_is_of(const struct doc_scoreboard_run *run, const struct doc_document *document);
/** Whether runs of this document have fewer windows than others of it. */
bool doc_scoreboard_is_of_race(const struct doc_scoreboard *table,
                               const struct doc_document *document);

/**
 * The metrics of the runs of a scoreboard, in the order in which --by-metric tells those with a
 * label; n: how many, at most DOC_MOST_METRICS.
 */
const struct doc_metric *doc_scoreboard_metrics(size_t *n, const struct doc_scoreboard *table);
/** The index of the metric with this key, which is one of them. */
size_t doc_scoreboard_find(const struct doc_scoreboard *table, const char *key);

/**
 * Add the runs of a document: each candidate of a divergence and, once, their base, on the windows
 * of the candidate that has most; the model of a perplexity; the model of choice tasks, which all
 * documents of a table are of, or none. Fails: STATUS_FORMAT (a field that is missing or of another
 * type), STATUS_MEMORY.
 */
enum status doc_scoreboard_add(struct doc_scoreboard *table, struct doc_document *document,
                               struct status_why *why);
/**
 * Give each run the name that it is shown by: its label, else one that its file's name makes beside
 * the others' (base/text/labels.h); and what keys and values were rounded to. When all are added.
 * Fails: STATUS_MEMORY.
 */
enum status doc_scoreboard_label(struct doc_scoreboard *table, struct status_why *why);
/**
 * Bases first, then by mean KLD, then those without one by perplexity; choice tasks by their kind;
 * else in their order.
 */
void doc_scoreboard_sort(struct doc_scoreboard *table);
void doc_scoreboard_free(struct doc_scoreboard *table);

#endif
