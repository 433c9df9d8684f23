/** Views of the figures that are rows: members of a document, lines for people. */
#ifndef CLI_OUTPUT_METRICS_H
#define CLI_OUTPUT_METRICS_H

#include "base/json/build.h"
#include "base/moments.h"
#include "clients/documents/results/metric.h"

/** Figures and where their values are. */
struct cli_metrics {
    const struct doc_metric *rows;
    size_t n;
    const void *result; /* the struct that the rows are of */
    unsigned hidden;    /* those with one of these flags are not there */
};

/** A figure of a result; of what is no estimate, the errors are 0. */
struct base_estimate cli_metric_value(const struct doc_metric *row, const void *result);

/** The members of a part of a document. */
void cli_json_metrics(struct base_json *json, cJSON *parent, const struct cli_metrics *metrics);

/** The lines of a block. of_lots: errors are those of lots, not of tokens. */
void cli_print_metrics(const struct cli_metrics *metrics, enum doc_block block, bool of_lots);

#endif
