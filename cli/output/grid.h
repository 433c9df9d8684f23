/** A table of texts as Markdown or CSV. Cells are made first, so that turning it is a loop swapped.
 */
#ifndef CLI_OUTPUT_GRID_H
#define CLI_OUTPUT_GRID_H

#include <stddef.h>

#include "base/status.h"

enum { CLI_CELL_BYTES = 384 };

/**
 * Texts in rows; the first row and, turned, the first column are heads. Zero-initialise; release
 * with cli_grid_free.
 */
struct cli_grid {
    char (*cells)[CLI_CELL_BYTES]; /* [n_rows][n_columns] */
    size_t n_rows, n_columns;
};

/** Empty cells. Fails: STATUS_MEMORY. */
enum status cli_grid_make(struct cli_grid *out, size_t n_rows, size_t n_columns,
                          struct status_why *why);
void cli_grid_free(struct cli_grid *grid);

/** How many characters a text has. */
size_t cli_text_columns(const char *text);

char *cli_grid_cell(const struct cli_grid *grid, size_t row, size_t column);

/** On standard output, as RFC 4180 has it. */
void cli_grid_print_csv(const struct cli_grid *grid);
/** On standard output. The first n_left columns are words, which stand left, the others right. */
void cli_grid_print_markdown(const struct cli_grid *grid, size_t n_left);

#endif
