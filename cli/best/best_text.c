/* The lines of assay best: the verdict, then a table. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/text/printable.h"
#include "cli/best/best.h"
#include "cli/output/grid.h"
#include "cli/process/run.h"
#include "cli/process/say.h"

static void print_beginning(const void *self)
{
    const struct cli_best *b = self;
    const struct eval_plan *plan = &b->k.windows.plan;
    cli_say("assay: %zu file%s that fit%s, on at most %zu window%s of %zu tokens in random order\n",
            b->rules.n, status_plural(b->rules.n), b->rules.n == 1 ? "s" : "", plan->n_windows,
            status_plural(plan->n_windows), plan->window);
}

/** After each look: how many files are still compared. */
static void print_look(void *self, size_t unit)
{
    struct cli_best *b = self;
    size_t n = 0;
    (void)unit;
    if (b->n_looks_told == b->race.n_looks)
        return;
    b->n_looks_told = b->race.n_looks;
    for (size_t i = 0; i < b->rules.n; i++)
        n += b->race.running[i];
    cli_say("assay: after %zu of %zu windows %zu of %zu files are still compared\n", b->race.n_seen,
            b->rules.n_windows, n, b->rules.n);
}

enum {
    NAME,
    QUANTISATION,
    SIZE,
    CACHE,
    SPEEDS,
    WINDOWS = SPEEDS + DOC_N_SPEEDS,
    KLD,
    TOP,
    SURVIVES,
    STANDING,
    N_COLUMNS
};
static const char *const heads[N_COLUMNS] = {"model",        "quantisation",   "size ",   "cache ",
                                             "prompt t/s",   "generation t/s", "windows", "KLD",
                                             "same top p %", "front",          "verdict"};

/** Those of speeds are there where something was measured; else what is put there is put over. */
static size_t place_of(const struct cli_best *b, size_t column)
{
    if (column < SPEEDS || b->speeds.n)
        return column;
    return column < WINDOWS ? (size_t)SPEEDS : column - DOC_N_SPEEDS;
}

static void put_estimate(char *cell, struct base_estimate x, double scale, int n)
{
    snprintf(cell, CLI_CELL_BYTES, "%.*f ± %.*f", n, base_shown(scale * x.value, n), n,
             base_shown(scale * base_estimate_error(x), n));
}

static void put_speed(char *cell, const struct doc_metric_value *v)
{
    int n = snprintf(cell, CLI_CELL_BYTES, "%.2f", v->value);
    if (!isnan(v->error))
        snprintf(cell + n, (size_t)(CLI_CELL_BYTES - n), " ± %.2f", v->error);
}

static void fill_row(const struct cli_best *b, const struct cli_grid *g, size_t row, size_t i)
{
    const struct cli_best_file *f = &b->files[i];
    struct cli_best_place p = cli_best_place(b, i);
    char *cells[N_COLUMNS];
    for (size_t c = 0; c < N_COLUMNS; c++)
        cells[c] = cli_grid_cell(g, row, place_of(b, c));
    snprintf(cells[NAME], CLI_CELL_BYTES, "%.*s", CLI_CELL_BYTES - 1, f->label);
    snprintf(cells[QUANTISATION], CLI_CELL_BYTES, "%s", f->quantisation);
    base_size_digits(cells[SIZE], cli_best_bytes(b, f), b->unit);
    for (size_t c = CACHE; c < STANDING; c++)
        snprintf(cells[c], CLI_CELL_BYTES, "-");
    if (f->cache > 0)
        base_size_digits(cells[CACHE], f->cache, b->unit);
    for (size_t kind = 0; kind < DOC_N_SPEEDS; kind++)
        if (b->speeds.n && f->speeds[kind].known)
            put_speed(cells[SPEEDS + kind], &f->speeds[kind]);
    snprintf(cells[STANDING], CLI_CELL_BYTES, "%s%s", cli_best_standings[p.standing],
             p.standing < CLI_BEST_NONFINITE && !p.clear ? "?" : "");
    if (f->candidate == SIZE_MAX)
        return;
    const struct eval_kld_result *r = &b->k.results[f->candidate];
    bool clear;
    snprintf(cells[WINDOWS], CLI_CELL_BYTES, "%zu", r->n_windows);
    if (!r->n_windows)
        return;
    put_estimate(cells[KLD], r->figures.kld, 1, 6);
    put_estimate(cells[TOP], r->figures.same_top, 100, 3);
    bool survives = eval_race_survives(&b->race, f->candidate, &clear);
    snprintf(cells[SURVIVES], CLI_CELL_BYTES, "%s%s", survives ? "yes" : "no", clear ? "" : "?");
}

static void print_table(const struct cli_best *b)
{
    struct cli_grid grid = {0};
    if (cli_grid_make(&grid, 1 + b->n_files, place_of(b, N_COLUMNS), NULL)) {
        puts("(no memory for a table)");
        return;
    }
    for (size_t c = 0; c < N_COLUMNS; c++)
        if (b->speeds.n || c < SPEEDS || c >= WINDOWS)
            snprintf(cli_grid_cell(&grid, 0, place_of(b, c)), CLI_CELL_BYTES, "%s%s", heads[c],
                     c == SIZE || c == CACHE ? b->unit->name : "");
    for (size_t i = 0; i < b->n_files; i++)
        fill_row(b, &grid, 1 + i, i);
    cli_grid_print_markdown(&grid, 2);
    cli_grid_free(&grid);
}

/** What "as good" means, how sure it is, and what it took. */
static void print_terms(const struct cli_best *b)
{
    const struct eval_race *r = &b->race;
    printf("\nAs good: a mean KL divergence of at most %g nats and %g %% more. All that is not "
           "marked with '?' holds at once\nwith a confidence of %g %%, as do the intervals. "
           "front: no smaller file is as good.\n",
           b->rules.nats, 100 * b->rules.share, 100 * (1 - b->rules.alpha));
    printf("%zu of %zu windows, %.1f %% of the tokens that all %zu file%s would take\n", r->n_seen,
           b->rules.n_windows, 100 * cli_best_share(b), b->rules.n, status_plural(b->rules.n));
}

static void print_end(void *self)
{
    const struct cli_best *b = self;
    struct status_why *sentences;
    size_t n = 0;
    if (base_array_new(sentences, b->n_files + 1, "sentences", NULL))
        puts("(no memory for a verdict)");
    else
        cli_best_verdict(b, sentences, &n);
    for (size_t i = 0; i < n; i++)
        printf("%s\n", sentences[i].text);
    free(sentences);
    putchar('\n');
    print_table(b);
    print_terms(b);
    cli_flush();
    cli_print_speed(&b->k.e);
}

const struct cli_lines cli_best_lines = {print_beginning, print_look, print_end};
