/* What is printed. Each figure of divergence is called a bound. */
#include <math.h>
#include <stdio.h>

#include "base/text/printable.h"
#include "cli/kld/server/bounds.h"
#include "cli/output/grid.h"
#include "cli/process/run.h"
#include "gguf/gguf.h"

enum { P99_9 = 1, MEDIAN = 6 }; /* of eval_quantile_levels */

static const double gibibyte = 1073741824.0;

static void print_base(const struct cli_bounds *b)
{
    char name[512], tokens[512];
    const struct probe_lists *l = b->base.lists;
    cli_connection_tokens(tokens, sizeof tokens, l);
    if (*tokens)
        printf("%s Those prompts are left out.\n\n", tokens);
    printf("Base: %s\n", base_printable_text(name, sizeof name, b->connection.described));
    printf("Predictions: %zu, in %zu texts; %zu answers or lists not usable", l->n,
           b->base.n_windows, l->n_spoilt);
    if (l->n_spoilt)
        printf(" (the first: %s)", base_printable_text(name, sizeof name, l->spoilt));
    if (l->n_unknown)
        printf("; %zu lists of texts that are no token's", l->n_unknown);
    printf("\nListed: %.3f %% of the base's probability in the mean\n", 100 * b->results[0].p_mass);
    if (b->base.tail_twice)
        puts("The server counts the tokens that are not listed twice; its values are mended.");
    cli_connection_print_noise(&b->questions);
    puts("Divergences are bounds: the base names only its likeliest tokens.");
}

static void print_estimate(const char *what, struct base_estimate x, int digits, const char *unit)
{
    printf("%s%.*f ± %.*f%s\n", what, digits, x.value, digits, base_estimate_error(x), unit);
}

static void print_model(const struct cli_model *m, const struct probe_bounds *r)
{
    const struct base_estimate top = {.value = 100 * r->same_top.value,
                                      .error = 100 * base_estimate_error(r->same_top)};
    printf("\n====== %s ======\n", m->called);
    print_estimate("Mean KLD, lower bound  : ", r->least, 6, "");
    print_estimate("Mean KLD, upper bound  : ", r->most, 6, "");
    printf("Lower bound, maximum   : %.6f\n", r->quantiles[0]);
    printf("Lower bound, 99.9 %%    : %.6f\n", r->quantiles[P99_9]);
    printf("Lower bound, median    : %.6f\n", r->quantiles[MEDIAN]);
    if (r->n_top)
        print_estimate("Same top p             : ", top, 3, " %");
    if (r->n_next)
        print_estimate("NLL less the base's    : ", r->nll_difference, 6, "");
    printf("  where the base lists the token that comes next: %zu of %zu\n", r->n_next, r->n);
}

/** A row for each model. */
static enum status print_table(const struct cli_bounds *b, struct status_why *why)
{
    enum { LABEL, TYPE, SIZE, LEAST, MOST, TAIL, TOP, NLL, N_COLUMNS };
    static const char *const heads[N_COLUMNS] = {
        "model",       "quantisation",    "size GiB",     "KLD at least",
        "KLD at most", "99.9 % at least", "Same top p %", "ΔNLL where listed"};
    struct cli_grid grid;
    enum status status = cli_grid_make(&grid, b->n_done + 1, N_COLUMNS, why);
    for (size_t c = 0; c < N_COLUMNS && !status; c++)
        snprintf(cli_grid_cell(&grid, 0, c), CLI_CELL_BYTES, "%s", heads[c]);
    for (size_t i = 0; i < b->n_done && !status; i++) {
        const struct cli_model *m = &b->models[i];
        const struct probe_bounds *r = &b->results[i];
        const struct gguf_quantisation q = gguf_quantisation(model_file(m->model));
#define CELL(column, ...) snprintf(cli_grid_cell(&grid, i + 1, column), CLI_CELL_BYTES, __VA_ARGS__)
        CELL(LABEL, "%s", m->called);
        CELL(TYPE, "%s%s", q.name, m->kv);
        CELL(SIZE, "%.4f", (double)cli_model_size(m).n_bytes / gibibyte);
        CELL(LEAST, "%.6f ± %.6f", r->least.value, base_estimate_error(r->least));
        CELL(MOST, "%.4f ± %.4f", r->most.value, base_estimate_error(r->most));
        CELL(TAIL, "%.6f", r->quantiles[P99_9]);
        CELL(TOP, "%.3f ± %.3f", 100 * r->same_top.value, 100 * base_estimate_error(r->same_top));
        CELL(NLL, "%.6f ± %.6f", r->nll_difference.value, base_estimate_error(r->nll_difference));
#undef CELL
    }
    if (!status) {
        putchar('\n');
        cli_grid_print_markdown(&grid, SIZE);
    }
    cli_grid_free(&grid);
    return status;
}

enum status cli_bounds_print(const struct cli_bounds *b, struct status_why *why)
{
    print_base(b);
    for (size_t i = 0; i < b->n_done; i++)
        print_model(&b->models[i], &b->results[i]);
    enum status status = b->n_done > 1 ? print_table(b, why) : STATUS_OK;
    cli_flush();
    return status;
}
