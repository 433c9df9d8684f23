/* The lines of assay explain: a sentence, then the table. */
#include <math.h>
#include <stdio.h>

#include "base/text/printable.h"
#include "cli/explain/explain.h"
#include "cli/output/grid.h"
#include "cli/process/run.h"
#include "cli/process/say.h"
#include "clients/activations/rule.h"

const char *const cli_explain_names[CLI_N_PARTS] = {
    [CLI_EXPLAIN_WEIGHTS] = "weights",   [CLI_EXPLAIN_ACTIVATIONS] = "activations",
    [CLI_EXPLAIN_KEYS] = "cache",        [CLI_EXPLAIN_BEYOND] = "beyond",
    [CLI_EXPLAIN_TOGETHER] = "together", [CLI_EXPLAIN_RECORDED] = "recorded",
    [CLI_EXPLAIN_LEFT] = "left_over",
};

size_t cli_explain_n_parts(const struct cli_explain *x)
{
    return x->settings->recorded ? CLI_N_PARTS : CLI_EXPLAIN_RECORDED;
}

static const char *const labels[CLI_N_PARTS] = {
    [CLI_EXPLAIN_WEIGHTS] = "weights",   [CLI_EXPLAIN_ACTIVATIONS] = "activations",
    [CLI_EXPLAIN_KEYS] = "cache",        [CLI_EXPLAIN_BEYOND] = "beyond their sum",
    [CLI_EXPLAIN_TOGETHER] = "together", [CLI_EXPLAIN_RECORDED] = "recorded",
    [CLI_EXPLAIN_LEFT] = "left over",
};

static void print_beginning(const void *self)
{
    const struct cli_explain *x = self;
    const struct eval_plan *plan = &x->k.windows.plan;
    char cache[DOC_KV_LABEL];
    cli_kv_label(cache, &model_hparams(x->k.candidates[CLI_EXPLAIN_CACHE].model)->kv);
    cli_say("assay: %zu window%s of %zu tokens; inputs as %s, cache%s\n", plan->n_windows,
            status_plural(plan->n_windows), plan->window,
            act_rule_name(x->settings->kld.evaluate.machine.activations),
            *cache ? cache : " not rounded");
}

static struct base_estimate estimate(const struct cli_explain *x, enum cli_explain_part part)
{
    return base_moments_estimate(&x->parts[part]);
}

/** A part of the whole, in per cent; 0 of nothing. */
static double share(const struct cli_explain *x, enum cli_explain_part part)
{
    double whole = estimate(x, CLI_EXPLAIN_TOGETHER).value;
    return whole > 0 ? base_shown(100 * estimate(x, part).value / whole, 1) : 0;
}

static void print_sentence(const struct cli_explain *x)
{
    const struct cli_kld *k = &x->k;
    char model[96], base[96];
    base_printable_text(model, sizeof model, base_file_name(x->settings->model));
    base_printable_text(base, sizeof base, base_file_name(k->settings->base));
    printf(
        "%s diverges from %s by %.3g nats in the mean where inputs are rounded as %s: %.1f %% of "
        "that are the weights', %.1f %% the activations', %.1f %% the cache's.\n",
        model, base, estimate(x, CLI_EXPLAIN_TOGETHER).value,
        act_rule_name(x->settings->kld.evaluate.machine.activations), share(x, CLI_EXPLAIN_WEIGHTS),
        share(x, CLI_EXPLAIN_ACTIVATIONS), share(x, CLI_EXPLAIN_KEYS));
    if (!x->settings->recorded)
        return;
    struct base_estimate left = estimate(x, CLI_EXPLAIN_LEFT);
    double error = base_estimate_error(left);
    const char *verdict = fabs(left.value) <= 3 * error
                              ? "no more than chance"
                              : "no more than chance and the recording's format explain";
    if (left.value > 3 * error)
        verdict = "its kernels' own";
    else if (left.value + x->recorded.share < -3 * error)
        verdict = "less than nothing: the engine rounds less, or otherwise";
    printf("The recording diverges by %.3g: %.2g ± %.1g are left over, which is %s. The format of "
           "the recording hides %.1g at most.\n",
           estimate(x, CLI_EXPLAIN_RECORDED).value, left.value, error, verdict, x->recorded.share);
    char budget[CLI_BUDGET_BYTES];
    printf("%s.\n", cli_budget_sentence(budget, &x->budget));
}

static void print_table(const struct cli_explain *x)
{
    enum { PART, KLD, ERROR, SHARE, N_COLUMNS };
    static const char *const heads[N_COLUMNS] = {"part", "KLD", "±", "share %"};
    struct cli_grid grid = {0};
    size_t n = cli_explain_n_parts(x);
    if (cli_grid_make(&grid, 1 + n, N_COLUMNS, NULL)) {
        puts("(no memory for a table)");
        return;
    }
    for (size_t c = 0; c < N_COLUMNS; c++)
        snprintf(cli_grid_cell(&grid, 0, c), CLI_CELL_BYTES, "%s", heads[c]);
    for (size_t i = 0; i < n; i++) {
        struct base_estimate part = estimate(x, (enum cli_explain_part)i);
        snprintf(cli_grid_cell(&grid, 1 + i, PART), CLI_CELL_BYTES, "%s", labels[i]);
        snprintf(cli_grid_cell(&grid, 1 + i, KLD), CLI_CELL_BYTES, "%.4g", part.value);
        snprintf(cli_grid_cell(&grid, 1 + i, ERROR), CLI_CELL_BYTES, "%.1e",
                 base_estimate_error(part));
        snprintf(cli_grid_cell(&grid, 1 + i, SHARE), CLI_CELL_BYTES, "%.1f",
                 share(x, (enum cli_explain_part)i));
    }
    cli_grid_print_markdown(&grid, 1);
    cli_grid_free(&grid);
}

static void print_end(void *self)
{
    const struct cli_explain *x = self;
    if (!x->k.results[0].n_windows)
        return;
    print_sentence(x);
    putchar('\n');
    print_table(x);
    printf("\n%zu tokens in %zu window%s of %zu; ± is one standard error, of parts over the same "
           "tokens\n",
           x->k.results[0].n_tokens, x->k.results[0].n_windows,
           status_plural(x->k.results[0].n_windows), x->k.windows.plan.window);
    cli_flush();
    cli_print_speed(&x->k.e);
}

const struct cli_lines cli_explain_lines = {.beginning = print_beginning, .end = print_end};
