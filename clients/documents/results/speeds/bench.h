/** What llama-bench prints with -o json or -o jsonl, as a document: its rows. */
#ifndef DOCUMENTS_RESULTS_BENCH_H
#define DOCUMENTS_RESULTS_BENCH_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "base/status.h"
#include "base/text/string.h"

/** Stands for it among the schemas of doc_parse_as; no document names it. */
#define DOC_BENCH_SCHEMA "llama-bench"

/** Whether a value, the first one of a text, is a list of rows or a row. */
bool doc_bench_is(const cJSON *value);

/**
 * Read all rows of a text. out: an object with the list `rows`; freed by the caller.
 * Fails: STATUS_FORMAT (as base_json_objects_read; more rows than anybody measures),
 *        STATUS_MEMORY.
 */
enum status doc_bench_read(cJSON **out, struct base_string text, struct status_why *why);

#endif
