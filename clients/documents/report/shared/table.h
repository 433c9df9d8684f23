/**
 * Tables of a page: a grid; on a narrow screen a block for each row, in which each figure stands
 * beside the head of its column.
 */
#ifndef DOCUMENTS_REPORT_SHARED_TABLE_H
#define DOCUMENTS_REPORT_SHARED_TABLE_H

#include "base/file/atomic_file.h"
#include "clients/documents/results/scoreboard.h"

/** A table that is being written. */
struct doc_table {
    struct base_file *file;
    const char *const *heads; /* NULL at the end; the first is that of the rows' heads */
    size_t column;            /* of the next cell */
};

/**
 * Begin a table; classes: of the table; name: what it is; heads: borrowed until the end, all but
 * the first `n_words` of numbers.
 */
void doc_table_begin(struct doc_table *table, const char *classes, const char *name,
                     size_t n_words);
void doc_table_end(struct doc_table *table);
/** Begin one that is folded up below a chart; two heads are of words. */
void doc_table_begin_folded(struct doc_table *table, const char *title, const char *name);
void doc_table_end_folded(struct doc_table *table);

/** Begin a row with its head; classes: of the head, or "". */
void doc_table_row(struct doc_table *table, const char *classes, const char *head);
void doc_table_row_end(struct doc_table *table);
/** A cell of words. */
void doc_table_words(struct doc_table *table, const char *words);
/** A cell with a number of n decimals. */
void doc_table_number(struct doc_table *table, double value, int n_decimals);
/** A cell with the figure of a metric, "-" where it is not known, nan where it is not finite. */
void doc_table_value(struct doc_table *table, const struct doc_metric *metric,
                     const struct doc_metric_value *value);
/** A cell with the first three digits of a number. */
void doc_table_short(struct doc_table *table, double value);
/** A cell with a figure down to the second digit of its error; all digits show when it is pointed
 * at. error: NaN, or 0: it has none. */
void doc_table_figure(struct doc_table *table, double value, double error);
/** Begin a cell of another form; classes: beside "n"; value: what it is sorted by. */
void doc_table_cell(struct doc_table *table, const char *classes, double value);
void doc_table_cell_end(struct doc_table *table);

enum { DOC_NUMBER_TEXT = 48 };
/** A number with n decimals, or in the form of %g where it is too large for that; "-": it is none.
 */
const char *doc_number(char out[DOC_NUMBER_TEXT], double value, int n_decimals);

#endif
