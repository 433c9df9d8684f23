/* A scoreboard for a terminal: the columns that it has room for, figures as far as they are known.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/text/number.h"
#include "base/text/printable.h"
#include "cli/output/grid.h"
#include "cli/results/results.h"

static const double gibibyte = 0x1p30, mebibyte = 0x1p20;

enum about { LABEL, QUANTISATION, IMATRIX, BITS, SIZE, METRIC };

/* In the order in which they stand. rank: those of the largest are left out first. */
static const struct column {
    enum about about;
    const char *key; /* of a metric */
    int rank;
} columns[] = {
    {LABEL, NULL, 0},
    {QUANTISATION, NULL, 10},
    {IMATRIX, NULL, 11},
    {BITS, NULL, 2},
    {SIZE, NULL, 3},
    {METRIC, "ppl", 6},
    {METRIC, "delta_ppl", 7},
    {METRIC, "kld", 1},
    {METRIC, "kld_p99_9", 5},
    {METRIC, "mean_dp_percent", 9},
    {METRIC, "rms_dp_percent", 8},
    {METRIC, "same_top_percent", 4},
};
enum {
    N_COLUMNS = sizeof columns / sizeof *columns,
    N_WORDS = IMATRIX + 1,
    GAP = 2,
    LEAST_LABEL = 12
};

struct fitted {
    const struct doc_scoreboard *table;
    double unit; /* of sizes */
    struct cli_grid grid;
    size_t widths[N_COLUMNS]; /* 0: not shown */
};

static void put_head(char *cell, const struct fitted *f, const struct column *c)
{
    static const char *const heads[] = {"model", "quantisation", "imatrix", "bpw"};
    size_t n;
    if (c->about == METRIC)
        snprintf(cell, CLI_CELL_BYTES, "%s",
                 doc_scoreboard_metrics(&n, f->table)[doc_scoreboard_find(f->table, c->key)].label);
    else if (c->about == SIZE)
        snprintf(cell, CLI_CELL_BYTES, "size %s", f->unit == gibibyte ? "GiB" : "MiB");
    else
        snprintf(cell, CLI_CELL_BYTES, "%s", heads[c->about]);
}

static void put_metric(char *cell, const struct fitted *f, const struct column *c,
                       const struct doc_scoreboard_run *run)
{
    size_t n, i = doc_scoreboard_find(f->table, c->key);
    const struct doc_metric *m = &doc_scoreboard_metrics(&n, f->table)[i];
    const struct doc_metric_value *v = &run->values[i];
    char text[BASE_FIGURE_BYTES] = "-";
    if (v->known && m->kind != DOC_REAL)
        base_figure_with_error(text, m->as->scale * v->value, m->as->scale * v->error);
    else if (v->known)
        base_figure(text, m->as->scale * v->value, 3);
    snprintf(cell, CLI_CELL_BYTES, "%s", text);
}

static void put_cell(char *cell, const struct fitted *f, const struct column *c,
                     const struct doc_scoreboard_run *run)
{
    const char *const words[] = {run->label, run->quantisation, run->imatrix};
    char text[BASE_FIGURE_BYTES];
    if (c->about <= IMATRIX)
        base_printable_text(cell, CLI_CELL_BYTES, words[c->about]);
    else if (c->about == BITS)
        snprintf(cell, CLI_CELL_BYTES, "%.2f", base_shown(run->bits_per_weight, 2));
    else if (c->about == SIZE)
        snprintf(cell, CLI_CELL_BYTES, "%s", base_figure(text, run->n_bytes / f->unit, 3));
    else
        put_metric(cell, f, c, run);
}

static size_t width_of(const struct fitted *f, size_t column)
{
    size_t width = 0;
    for (size_t row = 0; row < f->grid.n_rows; row++)
        width = base_max(width, cli_text_columns(cli_grid_cell(&f->grid, row, column)));
    return width;
}

static size_t total_of(const struct fitted *f)
{
    size_t total = 0;
    for (size_t i = 0; i < N_COLUMNS; i++)
        total += f->widths[i] ? f->widths[i] + (total ? GAP : 0) : 0;
    return total;
}

/* Leave out columns, last what the table is for; a long name gives way before what follows it. */
static void choose(struct fitted *f, size_t width)
{
    enum { LAST_OF_FEW = 5 };
    for (size_t i = 0; i < N_COLUMNS; i++)
        f->widths[i] = width_of(f, i);
    for (int rank = N_COLUMNS - 1; rank > 0 && total_of(f) > width; rank--) {
        size_t over = total_of(f) - width, least = base_min(LEAST_LABEL, f->widths[0]);
        if (rank <= LAST_OF_FEW && f->widths[0] >= least + over) {
            f->widths[0] -= over;
            return;
        }
        for (size_t i = 0; i < N_COLUMNS && rank > 1; i++)
            if (columns[i].rank == rank)
                f->widths[i] = 0;
    }
}

static void print_cell(const struct fitted *f, size_t row, size_t column)
{
    struct base_label label;
    const char *text = cli_grid_cell(&f->grid, row, column);
    if (cli_text_columns(text) > f->widths[column])
        text = base_label_fit(&label, text, f->widths[column]);
    int blanks = (int)(f->widths[column] - cli_text_columns(text));
    bool last = true;
    for (size_t i = column + 1; i < N_COLUMNS; i++)
        last &= !f->widths[i];
    if (column < N_WORDS)
        printf("%s%*s%s", text, last ? 0 : blanks, "", last ? "\n" : "  ");
    else
        printf("%*s%s%s", blanks, "", text, last ? "\n" : "  ");
}

enum status cli_scoreboard_print_fitted(struct doc_scoreboard *table, size_t width,
                                        struct status_why *why)
{
    struct fitted f = {.table = table, .unit = mebibyte};
    doc_scoreboard_sort(table);
    for (size_t i = 0; i < table->n; i++)
        if (table->runs[i].n_bytes >= gibibyte)
            f.unit = gibibyte;
    enum status status = cli_grid_make(&f.grid, 1 + table->n, N_COLUMNS, why);
    for (size_t i = 0; i < N_COLUMNS && !status; i++) {
        put_head(cli_grid_cell(&f.grid, 0, i), &f, &columns[i]);
        for (size_t row = 1; row <= table->n; row++)
            put_cell(cli_grid_cell(&f.grid, row, i), &f, &columns[i], &table->runs[row - 1]);
    }
    if (!status)
        choose(&f, width);
    for (size_t row = 0; row < f.grid.n_rows && !status; row++)
        for (size_t i = 0; i < N_COLUMNS; i++)
            if (f.widths[i])
                print_cell(&f, row, i);
    cli_grid_free(&f.grid);
    return status;
}
