/* A scoreboard as Markdown or CSV. Cells are made first, so that turning it is a loop swapped. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output/printable.h"
#include "cli/results/scoreboard.h"

static const double gibibyte = 1073741824.0;

enum { CELL_BYTES = 160 };

/* Texts in rows; the first row and, turned, the first column are heads. */
struct grid {
    char (*cells)[CELL_BYTES]; /* [n_rows][n_columns] */
    size_t n_rows, n_columns;
};

/* What a grid is made from. */
struct board {
    const struct cli_scoreboard *table;
    bool csv, by_metric;
    bool named; /* the runs are of several models, so that each needs its name */
};

static char *cell_at(const struct grid *g, size_t row, size_t column)
{
    return g->cells[row * g->n_columns + column];
}

/* A number with n decimals, unless so large that they would mean nothing. */
static void put_number(char *text, size_t capacity, double x, int n)
{
    if (fabs(x) < 1e15)
        snprintf(text, capacity, "%.*f", n, cli_shown(x, n));
    else
        snprintf(text, capacity, "%g", x);
}

/* "1.234 ± 0.005" for people; in CSV all digits, and the error elsewhere. */
static void put_value(char *cell, const struct board *b, size_t metric,
                      const struct cli_metric_value *v)
{
    const struct cli_metric *m = &cli_metrics[metric];
    char value[32], error[32];
    put_number(value, sizeof value, m->scale * v->value, m->n_decimals);
    put_number(error, sizeof error, m->scale * v->error, m->n_decimals);
    if (!v->known)
        snprintf(cell, CELL_BYTES, "%s", b->csv ? "" : "-");
    else if (b->csv)
        snprintf(cell, CELL_BYTES, "%.17g", m->scale * v->value);
    else if (m->error)
        snprintf(cell, CELL_BYTES, "%s ± %s", value, error);
    else
        snprintf(cell, CELL_BYTES, "%s", value);
}

static void put_error(char *cell, size_t metric, const struct cli_metric_value *v)
{
    *cell = '\0';
    if (v->known)
        snprintf(cell, CELL_BYTES, "%.17g", cli_metrics[metric].scale * v->error);
}

static const char *const about_labels[] = {"model", "quantisation", "imatrix", "size GiB", "bpw"};
static const char *const about_keys[] = {"model", "quantisation", "imatrix", "size_gib",
                                         "bits_per_weight"};
enum { N_ABOUT = sizeof about_keys / sizeof *about_keys };

static void put_about(char *cell, const struct board *b, size_t i,
                      const struct cli_scoreboard_run *run)
{
    double number = i == 3 ? run->n_bytes / gibibyte : run->bits_per_weight;
    if (i >= 3 && b->csv)
        snprintf(cell, CELL_BYTES, "%.17g", number);
    else if (i >= 3)
        put_number(cell, CELL_BYTES, number, 4);
    else
        cli_printable(cell, CELL_BYTES,
                      i == 0   ? run->name
                      : i == 1 ? run->quantisation
                               : run->imatrix);
}

/*
 * Cell (run, field) of the table, or the field's head where run is NULL. Fields: what there is
 * about the model, then metrics, in CSV each with its error where it has one. Returns whether
 * there is such a field; `cell` may be NULL.
 */
static bool put_field(char *cell, const struct board *b, size_t field,
                      const struct cli_scoreboard_run *run)
{
    size_t at = 0;
    for (size_t i = b->csv || b->named ? 0 : 1; i < N_ABOUT; i++, at++) {
        if (at != field)
            continue;
        if (cell && run)
            put_about(cell, b, i, run);
        else if (cell)
            snprintf(cell, CELL_BYTES, "%s", b->csv ? about_keys[i] : about_labels[i]);
        return true;
    }
    for (size_t i = 0; i < CLI_N_METRICS; i++) {
        const struct cli_metric *m = &cli_metrics[i];
        if (!m->on_board && !b->by_metric)
            continue;
        for (int of_error = 0; of_error <= (b->csv && m->error); of_error++, at++) {
            if (at != field || !cell)
                continue;
            if (run && of_error)
                put_error(cell, i, &run->values[i]);
            else if (run)
                put_value(cell, b, i, &run->values[i]);
            else if (b->csv)
                snprintf(cell, CELL_BYTES, "%s%s", m->key, of_error ? "_error" : "");
            else
                snprintf(cell, CELL_BYTES, "%s", m->label);
        }
    }
    return field < at;
}

static enum status make_grid(struct grid *g, const struct board *b, struct status_why *why)
{
    size_t n_fields = 0, n_runs = b->table->n;
    while (put_field(NULL, b, n_fields, NULL))
        n_fields++;
    g->n_rows = b->by_metric ? n_fields : 1 + n_runs;
    g->n_columns = b->by_metric ? 1 + n_runs : n_fields;
    g->cells = calloc(g->n_rows * g->n_columns, sizeof *g->cells);
    if (!g->cells)
        return status_fail(why, STATUS_MEMORY, "no memory for a table of %zu runs", n_runs);
    for (size_t field = 0; field < n_fields; field++)
        for (size_t run = 0; run <= n_runs; run++)
            put_field(b->by_metric ? cell_at(g, field, run) : cell_at(g, run, field), b, field,
                      run ? &b->table->runs[run - 1] : NULL);
    return STATUS_OK;
}

/* A field of RFC 4180: in quotes where it has to be. */
static void print_csv_cell(const char *text)
{
    if (!strpbrk(text, ",\"")) {
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

static void print_csv(const struct grid *g)
{
    for (size_t row = 0; row < g->n_rows; row++)
        for (size_t column = 0; column < g->n_columns; column++) {
            print_csv_cell(cell_at(g, row, column));
            putchar(column + 1 < g->n_columns ? ',' : '\n');
        }
}

/* Characters that a cell takes in Markdown: a bar needs a backslash. */
static size_t width_of(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80 ? 1 + (*text == '|') : 0;
    return n;
}

static void print_markdown_cell(const char *text, size_t width, bool left)
{
    size_t blanks = width - width_of(text);
    printf("| %*s", left ? 0 : (int)blanks, "");
    for (; *text; text++)
        printf(*text == '|' ? "\\%c" : "%c", *text);
    printf("%*s ", left ? (int)blanks : 0, "");
}

/* Heads and words stand left, numbers right. */
static void print_markdown(const struct grid *g, size_t n_left)
{
    size_t *widths = calloc(g->n_columns, sizeof *widths);
    for (size_t column = 0; widths && column < g->n_columns; column++) {
        widths[column] = 4;
        for (size_t row = 0; row < g->n_rows; row++) {
            size_t width = width_of(cell_at(g, row, column));
            widths[column] = width > widths[column] ? width : widths[column];
        }
    }
    for (size_t row = 0; row < g->n_rows; row++) {
        for (size_t column = 0; column < g->n_columns; column++)
            print_markdown_cell(cell_at(g, row, column),
                                widths ? widths[column] : width_of(cell_at(g, row, column)),
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

enum status cli_scoreboard_print(const struct cli_scoreboard *table, bool csv, bool by_metric,
                                 struct status_why *why)
{
    struct board board = {.table = table, .csv = csv, .by_metric = by_metric};
    for (size_t i = 1; i < table->n; i++)
        board.named |= strcmp(table->runs[i].name, table->runs[0].name) != 0;
    struct grid grid = {0};
    enum status status = make_grid(&grid, &board, why);
    if (status == STATUS_OK && csv)
        print_csv(&grid);
    else if (status == STATUS_OK)
        print_markdown(&grid, by_metric ? 1 : board.named ? 3 : 2);
    free(grid.cells);
    return status;
}
