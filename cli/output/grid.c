#include "cli/output/grid.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text/printable.h"

enum status cli_grid_make(struct cli_grid *g, size_t n_rows, size_t n_columns,
                          struct status_why *why)
{
    *g = (struct cli_grid){.n_rows = n_rows, .n_columns = n_columns};
    return base_array_new(g->cells, n_rows * n_columns, "cells of a table", why);
}

void cli_grid_free(struct cli_grid *g)
{
    free(g->cells);
    *g = (struct cli_grid){0};
}

char *cli_grid_cell(const struct cli_grid *g, size_t row, size_t column)
{
    return g->cells[row * g->n_columns + column];
}

/* A field of RFC 4180: in quotes where it has to be. */
static void print_csv_cell(const char *text)
{
    if (!strpbrk(text, ",;\"")) {
        fputs(text, stdout);
        return;
    }
    putchar('"');
    for (; *text; text++) {
        if (*text == '"')
            putchar('"');
        putchar(*text);
    }
    putchar('"');
}

void cli_grid_print_csv(const struct cli_grid *g)
{
    for (size_t row = 0; row < g->n_rows; row++)
        for (size_t column = 0; column < g->n_columns; column++) {
            print_csv_cell(cli_grid_cell(g, row, column));
            putchar(column + 1 < g->n_columns ? ',' : '\n');
        }
}

size_t cli_text_columns(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

enum { SHOWN_BYTES = 2 * CLI_CELL_BYTES };

static size_t width_of(const char *text)
{
    char shown[SHOWN_BYTES];
    return cli_text_columns(base_markdown(shown, sizeof shown, text));
}

static void print_markdown_cell(const char *text, size_t width, bool left)
{
    char shown[SHOWN_BYTES];
    int blanks = (int)(width - width_of(text));
    printf("| %*s%s%*s ", left ? 0 : blanks, "", base_markdown(shown, sizeof shown, text),
           left ? blanks : 0, "");
}

/* Heads and words stand left, numbers right. */
void cli_grid_print_markdown(const struct cli_grid *g, size_t n_left)
{
    size_t *widths = calloc(g->n_columns, sizeof *widths);
    for (size_t column = 0; widths && column < g->n_columns; column++) {
        widths[column] = 4;
        for (size_t row = 0; row < g->n_rows; row++) {
            size_t width = width_of(cli_grid_cell(g, row, column));
            widths[column] = width > widths[column] ? width : widths[column];
        }
    }
    for (size_t row = 0; row < g->n_rows; row++) {
        for (size_t column = 0; column < g->n_columns; column++)
            print_markdown_cell(cli_grid_cell(g, row, column),
                                widths ? widths[column] : width_of(cli_grid_cell(g, row, column)),
                                column < n_left);
        puts("|");
        for (size_t column = 0; row == 0 && column < g->n_columns; column++) {
            fputs("| ", stdout);
            for (size_t i = 1; i < (widths ? widths[column] : 4); i++)
                putchar('-');
            fputs(column < n_left ? "- " : ": ", stdout);
        }
        if (row == 0)
            puts("|");
    }
    free(widths);
}
