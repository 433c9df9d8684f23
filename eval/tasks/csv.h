/** Rows of CSV (RFC 4180), unquoted in place; for the loaders. */
#ifndef EVAL_TASKS_CSV_H
#define EVAL_TASKS_CSV_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "base/text/string.h"

/** Where a reader is. */
struct eval_csv {
    char *at, *end;
    size_t line; /* of `at`, from 1 */
};

/**
 * The fields of the next row, up to `most` of them; *n is how many it has, 0 for an empty line. The
 * row's newline is passed over. Fails: STATUS_FORMAT (a quote that does not end, or that something
 * follows).
 */
enum status eval_csv_row(struct eval_csv *csv, struct base_string *fields, size_t most, size_t *n,
                         struct status_why *why);

/** Whether a row is the head of a table: its last field is called "answer". */
bool eval_csv_is_head(struct base_string last);

/** A field without blanks at both ends. */
struct base_string eval_csv_trim(struct base_string field);

#endif
