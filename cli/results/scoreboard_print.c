/* A scoreboard as Markdown or CSV. Cells are made first, so that turning it is a loop swapped. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text/printable.h"
#include "cli/output/grid.h"
#include "cli/results/results.h"

static const double gibibyte = 1073741824.0;

/* What is told of each run: something about its model, a metric, or a metric's error. */
struct field {
    enum { ABOUT, VALUE, ERROR } kind;
    size_t index; /* in `about` or the metrics */
};

static const struct {
    const char *label, *key;
} about[] = {{"file", "file"},         {"name", "model"},         {"quantisation", "quantisation"},
             {"imatrix", "imatrix"},   {"task", "task"},          {"model", "label"},
             {"size GiB", "size_gib"}, {"bpw", "bits_per_weight"}};
enum {
    N_ABOUT = sizeof about / sizeof *about,
    FILE_NAME = 0,
    NAME = 1,
    TASK = 4,
    LABEL = 5,
    N_WORDS = 6
};

/* What a grid is made from. */
struct board {
    const struct doc_scoreboard *table;
    const struct doc_metric *metrics;
    bool csv, by_metric;
    bool named;     /* the runs are of several models, so that each needs its name */
    size_t n_words; /* fields that are words, the first ones */
    struct field fields[N_ABOUT + 2 * DOC_MOST_METRICS];
    size_t n_fields;
};

static bool has_error(const struct doc_metric *m, const struct doc_metric_value *v)
{
    return m->kind != DOC_REAL && !(m->flags & DOC_SAMPLED && isnan(v->error));
}

/* A number with n decimals, unless so large that they would mean nothing. */
static void put_number(char *text, size_t capacity, double x, int n)
{
    if (fabs(x) < 1e15)
        snprintf(text, capacity, "%.*f", n, base_shown(x, n));
    else
        snprintf(text, capacity, "%g", x);
}

/* "1.234 ± 0.005" for people; in CSV all digits, and the error elsewhere. */
static void put_value(char *cell, const struct board *b, size_t metric,
                      const struct doc_metric_value *v)
{
    const struct doc_metric *m = &b->metrics[metric];
    char value[32], error[32];
    put_number(value, sizeof value, m->as->scale * v->value, m->as->n_decimals);
    put_number(error, sizeof error, m->as->scale * v->error, m->as->n_decimals);
    if (!v->known)
        snprintf(cell, CLI_CELL_BYTES, "%s", b->csv ? "" : "-");
    else if (b->csv)
        snprintf(cell, CLI_CELL_BYTES, "%.17g", m->as->scale * v->value);
    else if (has_error(m, v))
        snprintf(cell, CLI_CELL_BYTES, "%s ± %s", value, error);
    else
        snprintf(cell, CLI_CELL_BYTES, "%s", value);
}

/* Names come from files that come from anywhere. What begins like a formula gets an apostrophe in
 * front, which spreadsheets take for "this is text"; a lone - is "not known". */
static void put_word(char *cell, bool csv, const char *word)
{
    bool formula = csv && *word && strchr("=+-@", *word) && strcmp(word, "-") != 0;
    *cell = '\'';
    base_printable_text(cell + formula, CLI_CELL_BYTES - (size_t)formula, word);
}

static void put_about(char *cell, const struct board *b, size_t i,
                      const struct doc_scoreboard_run *run)
{
    const char *const words[N_WORDS] = {run->file,    run->name, run->quantisation,
                                        run->imatrix, run->task, run->label};
    double number = i == N_WORDS ? run->n_bytes / gibibyte : run->bits_per_weight;
    if (i >= N_WORDS && b->csv)
        snprintf(cell, CLI_CELL_BYTES, "%.17g", number);
    else if (i >= N_WORDS)
        put_number(cell, CLI_CELL_BYTES, number, 4);
    else
        put_word(cell, b->csv, words[i]);
}

/* CSV has errors in fields of their own. */
static void choose_fields(struct board *b)
{
    for (size_t i = 0; i < N_ABOUT; i++) {
        if ((i == LABEL && !b->csv) || (i == NAME && !b->csv && !b->named) ||
            (i == TASK && !b->table->of_tasks))
            continue;
        b->fields[b->n_fields++] = (struct field){ABOUT, i == FILE_NAME && !b->csv ? LABEL : i};
        b->n_words += i < N_WORDS;
    }
    size_t n;
    unsigned shown = b->table->new_type ? DOC_OF_NEW_TYPE : DOC_ON_BOARD;
    b->metrics = doc_scoreboard_metrics(&n, b->table);
    for (size_t i = 0; i < n; i++) {
        const struct doc_metric *m = &b->metrics[i];
        if (!m->label || (!b->by_metric && !(m->flags & shown)))
            continue;
        b->fields[b->n_fields++] = (struct field){VALUE, i};
        if (b->csv && m->kind != DOC_REAL)
            b->fields[b->n_fields++] = (struct field){ERROR, i};
    }
}

static void put_head(char *cell, const struct board *b, struct field f)
{
    const char *label = f.kind == ABOUT ? about[f.index].label : b->metrics[f.index].label;
    const char *key = f.kind == ABOUT ? about[f.index].key : b->metrics[f.index].key;
    snprintf(cell, CLI_CELL_BYTES, "%s%s", b->csv ? key : label, f.kind == ERROR ? "_error" : "");
}

static void put_field(char *cell, const struct board *b, struct field f,
                      const struct doc_scoreboard_run *run)
{
    const struct doc_metric_value *v = &run->values[f.index];
    if (f.kind == ABOUT)
        put_about(cell, b, f.index, run);
    else if (f.kind == VALUE)
        put_value(cell, b, f.index, v);
    else if (v->known && has_error(&b->metrics[f.index], v))
        snprintf(cell, CLI_CELL_BYTES, "%.17g", b->metrics[f.index].as->scale * v->error);
}

static enum status make_grid(struct cli_grid *g, const struct board *b, struct status_why *why)
{
    size_t n_fields = b->n_fields, n_runs = b->table->n;
    if (cli_grid_make(g, b->by_metric ? n_fields : 1 + n_runs, b->by_metric ? 1 + n_runs : n_fields,
                      why))
        return STATUS_MEMORY;
    for (size_t i = 0; i < n_fields; i++) {
        put_head(cli_grid_cell(g, b->by_metric ? i : 0, b->by_metric ? 0 : i), b, b->fields[i]);
        for (size_t run = 1; run <= n_runs; run++)
            put_field(b->by_metric ? cli_grid_cell(g, i, run) : cli_grid_cell(g, run, i), b,
                      b->fields[i], &b->table->runs[run - 1]);
    }
    return STATUS_OK;
}

enum status cli_scoreboard_print(struct doc_scoreboard *table, bool csv, bool by_metric,
                                 struct status_why *why)
{
    doc_scoreboard_sort(table);
    struct board board = {.table = table, .csv = csv, .by_metric = by_metric};
    for (size_t i = 1; i < table->n; i++)
        board.named |= strcmp(table->runs[i].name, table->runs[0].name) != 0;
    choose_fields(&board);
    struct cli_grid grid = {0};
    enum status status = make_grid(&grid, &board, why);
    if (!status && csv)
        cli_grid_print_csv(&grid);
    else if (!status)
        cli_grid_print_markdown(&grid, by_metric ? 1 : board.n_words);
    cli_grid_free(&grid);
    return status;
}
