/* assay check --again: recordings of one program on one input, and how far they are apart. */
#include <math.h>
#include <stdlib.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "cli/check/check_evaluator.h"

/* Two runs of one program are about as far from exact as each other, unless both are exact. */
static const double most_unlike = 3, least_unlike = 1e-6;

enum status cli_again_open(struct cli_check *c, struct status_why *why)
{
    const struct cli_list *paths = &c->settings->again;
    enum status status = base_array_new(c->noise.runs, paths->n, "recordings", why);
    for (size_t i = 0; i < paths->n && !status; i++)
        status = cli_check_open_other(&c->noise.runs[i].recorded, paths->items[i], c, why);
    return status;
}

enum status cli_again_lay(struct cli_check *c, struct status_why *why)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < c->settings->again.n && !status; i++) {
        struct cli_check_run *run = &c->noise.runs[i];
        status = cli_check_lay_other(&run->recorded, &run->table, c, why);
        if (status)
            status_context(why, "--again");
    }
    return status;
}

void cli_again_close(struct cli_check *c)
{
    for (size_t i = 0; c->noise.runs && i < c->settings->again.n; i++) {
        eval_table_free(&c->noise.runs[i].table);
        cli_base_close(&c->noise.runs[i].recorded);
    }
    free(c->noise.runs);
}

/* Which of the recordings beside the first one is run i. */
static size_t other_of(const struct cli_check *c, size_t i)
{
    return (c->settings->against != NULL) + i;
}

static enum status summarise_run(struct cli_check *c, size_t i, struct status_why *why)
{
    struct cli_check_run *run = &c->noise.runs[i];
    const struct eval_table tables[2] = {c->windows.tables[0], run->table};
    struct eval_check_result result;
    enum status status = eval_check_summarise(&result, c->check, tables, 0, why);
    if (status)
        return status;
    run->beyond = result.beyond;
    run->difference = c->result.kld.figures.kld.value - result.kld.figures.kld.value;
    run->same_bits = eval_check_same_bits(c->check, other_of(c, i), &run->table);
    eval_check_result_free(&result);
    return STATUS_OK;
}

/* A token's mean over the runs: x[windows that are done][n_scored], and each run's over all. */
static void fill(struct cli_check *c, double *x, size_t *n_windows)
{
    size_t n_scored = c->windows.plan.n_scored, n_runs = c->settings->again.n, n = 0;
    *n_windows = 0;
    for (size_t w = 0; w < c->windows.plan.n_windows; w++) {
        *n_windows += c->windows.tables[0].done[w];
        for (size_t i = 0; c->windows.tables[0].done[w] && i < n_scored; i++, n++)
            for (size_t r = 0; r < n_runs; r++) {
                double apart = eval_check_apart(c->check, other_of(c, r), w, i);
                x[n] += apart / (double)n_runs;
                c->noise.runs[r].apart += apart;
            }
    }
    for (size_t r = 0; r < n_runs && n; r++)
        c->noise.runs[r].apart /= (double)n;
}

static double mean_of(const double *x, size_t n)
{
    struct base_moments m = {0};
    for (size_t i = 0; i < n; i++)
        base_moments_add(&m, x[i]);
    return base_moments_mean(&m);
}

/* A recording of another model is no noise. */
static void judge(struct cli_check *c)
{
    struct cli_check_noise *noise = &c->noise;
    noise->judges = true;
    for (size_t i = 0; i < c->settings->again.n; i++) {
        const struct cli_check_run *run = &noise->runs[i];
        double a = fmax(c->result.beyond, 0), b = fmax(run->beyond, 0);
        bool unlike = fmax(a, b) > fmax(most_unlike * fmin(a, b), least_unlike);
        if (unlike && noise->judges) {
            noise->judges = false;
            noise->unlike = run;
        }
        noise->difference = fmax(noise->difference, fabs(run->difference));
    }
}

enum status cli_again_summarise(struct cli_check *c, struct status_why *why)
{
    size_t n_runs = c->settings->again.n, n_scored = c->windows.plan.n_scored, n_windows;
    double *x = NULL;
    if (n_runs == 0 || c->result.kld.n_windows == 0)
        return STATUS_OK;
    enum status status = base_array_new(x, c->windows.plan.n_windows * n_scored, "tokens", why);
    for (size_t i = 0; i < n_runs && !status; i++)
        status = summarise_run(c, i, why);
    if (!status) {
        fill(c, x, &n_windows);
        size_t first = base_min(act_budget_windows(&c->windows.plan), n_windows);
        status = eval_noise(&c->noise.figures, x, n_windows, n_scored, why);
        c->noise.part = c->noise.figures.mean.value / 2;
        c->noise.of_budget = mean_of(x, first * n_scored) / 2;
        judge(c);
    }
    free(x);
    return status;
}

enum status cli_check_list_others(struct cli_check *c, struct status_why *why)
{
    size_t n_again = c->settings->again.n, n = 0;
    if (base_array_new(c->sources, 1 + n_again, "recordings", why) ||
        base_array_new(c->others, 1 + n_again, "recordings", why))
        return STATUS_MEMORY;
    if (c->settings->against) {
        c->sources[n] = &c->against.recorded.source;
        c->others[n++] = c->against.table;
    }
    for (size_t i = 0; i < n_again; i++) {
        c->sources[n] = &c->noise.runs[i].recorded.source;
        c->others[n++] = c->noise.runs[i].table;
    }
    c->n_others = n;
    return STATUS_OK;
}
