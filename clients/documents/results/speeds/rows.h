/** Rows of llama-bench, for the files that make up speeds.h. */
#ifndef DOCUMENTS_RESULTS_SPEED_ROWS_H
#define DOCUMENTS_RESULTS_SPEED_ROWS_H

#include "clients/documents/results/speeds/speeds.h"

/** How near a row came to a model: of several models the nearest counts. */
enum doc_speed_fit {
    DOC_ROW_NO_MODEL,
    DOC_ROW_OF_TASKS,
    DOC_ROW_OTHER_SIZE,
    DOC_ROW_OTHER_RUN,
    DOC_ROW_TAKEN,
    DOC_ROW_N_FITS
};

/* A prompt and a generation in one time: no speed of either. */
enum { DOC_ROW_OF_BOTH = DOC_N_SPEEDS };

struct doc_speed_row {
    struct base_field at;
    const char *file;
    uint64_t n_bytes, n_weights;
    size_t kind;
    uint64_t length, depth; /* in tokens: of the prompt or of what was generated, and before it */
    uint64_t hash;          /* of the configuration without its build */
    size_t like, n_like;    /* the first row of that configuration; there: how many rows have it */
    struct doc_metric_value speed;
    enum doc_speed_fit fit;
};

/** What may differ between rows of a file, of which a later one takes the place of an earlier. */
extern const char doc_speed_builds[];

/**
 * What the configurations of two rows differ in, the first of it: "n_threads is 2 and 8". Returns
 * whether they do. ignored: members that may differ, beside those that are no configuration.
 */
bool doc_speeds_differ(struct base_field a, struct base_field b, const char *ignored, char *out,
                       size_t capacity);

#endif
