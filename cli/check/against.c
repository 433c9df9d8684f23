/* assay check --against: a second recording, from before a change, read beside the first one. */
#include <math.h>
#include <stdio.h>

#include "base/arithmetic.h"
#include "cli/check/check_evaluator.h"
#include "cli/process/say.h"
#include "kernels/kernels.h"

enum { FIRST_WINDOWS = 8 }; /* whose spread tells how many --resolve takes */

enum status cli_against_check(const struct cli_check_settings *s, struct status_why *why)
{
    if (s->resolve <= 0)
        return status_fail(why, STATUS_USAGE, "--resolve %g: expected a number above 0",
                           s->resolve);
    return STATUS_OK;
}

enum status cli_check_open_other(struct cli_base *out, const char *path, const struct cli_check *c,
                                 struct status_why *why)
{
    enum status status = cli_base_check_logits(path, why);
    return status ? status : cli_base_open(out, path, &c->settings->evaluate, why);
}

enum status cli_check_lay_other(struct cli_base *other, struct eval_table *table,
                                const struct cli_check *c, struct status_why *why)
{
    const struct eval_plan *plan = &c->windows.plan;
    enum status status = eval_logits_check_same(&c->recorded.logits, &other->logits,
                                                plan->options.skip_windows, plan->n_windows, why);
    if (!status)
        status = other->kind->check(other, c->model.model, NULL, why);
    if (!status)
        status = other->kind->use(other, plan, false, why);
    return status ? status : eval_table_make_for(table, EVAL_N_PAIR_COLUMNS, plan, why);
}

enum status cli_against_open(struct cli_check *c, struct status_why *why)
{
    const char *path = c->settings->against;
    return path ? cli_check_open_other(&c->against.recorded, path, c, why) : STATUS_OK;
}

enum status cli_against_lay(struct cli_check *c, struct status_why *why)
{
    if (!c->settings->against)
        return STATUS_OK;
    enum status status = cli_check_lay_other(&c->against.recorded, &c->against.table, c, why);
    if (!status && c->windows.plan.n_windows < 2)
        status = status_fail(why, STATUS_USAGE,
                             "--against: %s has one window to compare; an interval takes two or "
                             "more",
                             c->recorded.path);
    return status;
}

void cli_against_close(struct cli_check *c)
{
    eval_check_result_free(&c->against.result);
    eval_table_free(&c->against.table);
    cli_base_close(&c->against.recorded);
}

/*
 * About how far the rounding of the exact evaluation may have moved the difference: as of a
 * divergence of one recording from the other, which is at most (sqrt a + sqrt b)^2, where errors
 * do not know of each other.
 */
static double rounding_of(const struct cli_check *c, double a, double b, size_t n_tokens)
{
    const double least_bits = 16;
    const char *products = kern_describe(c->e.backends.items[0]).products;
    bool whole = cli_model_size(&c->model).bits_per_weight >= least_bits;
    double root = sqrt(fmax(a, 0)) + sqrt(fmax(b, 0));
    return eval_kld_rounding(root * root, n_tokens, eval_rounding_of(products, whole));
}

/* The windows that are done count. */
static enum status compare(struct eval_against_result *out, const struct cli_check *c, double a,
                           double b, size_t n_tokens, struct status_why *why)
{
    const struct eval_table *tables = c->windows.tables;
    struct eval_against_task task = {
        .exact = &tables[0],
        .a = &tables[1],
        .b = &c->against.table,
        .same_bits = eval_check_same_bits(c->check, 0, &c->against.table),
        .resolve = c->settings->resolve,
        .rounding = rounding_of(c, a, b, n_tokens),
        .noise = c->noise.judges ? c->noise.difference : (double)NAN,
    };
    return eval_against(out, &task, why);
}

void cli_against_window(const struct cli_check *c, size_t w)
{
    size_t n = c->windows.plan.n_windows;
    struct eval_against_result first;
    if (!c->settings->against || isnan(c->settings->resolve) ||
        w + 1 != base_min(n, FIRST_WINDOWS) || compare(&first, c, 0, 0, 1, NULL))
        return;
    char needed[48];
    snprintf(needed, sizeof needed, first.n_needed ? "%zu windows" : "more windows than any text",
             first.n_needed);
    cli_say("assay: note: --resolve %g takes about %s, by the spread of the first %zu; there are "
            "%zu%s\n",
            c->settings->resolve, needed, first.kld.n, n,
            first.n_needed && first.n_needed <= n ? "" : ": too few to call two recordings equal");
}

enum status cli_against_summarise(struct cli_check *c, struct status_why *why)
{
    if (!c->settings->against)
        return STATUS_OK;
    struct cli_check_against *old = &c->against;
    const struct eval_table tables[2] = {c->windows.tables[0], old->table};
    enum status status = eval_check_summarise(&old->result, c->check, tables, 0, why);
    if (!status)
        status = compare(&old->paired, c, c->result.kld.figures.kld.value,
                         old->result.kld.figures.kld.value, c->result.kld.n_tokens, why);
    return status;
}

enum status cli_against_verdict(const struct cli_check *c, struct status_why *why)
{
    if (!c->settings->against)
        return STATUS_OK;
    const struct eval_against_result *r = &c->against.paired;
    const char *file = c->recorded.path, *old = c->against.recorded.path;
    if (c->against.result.kld.nonfinite.n)
        return status_fail(why, STATUS_NONFINITE, "%s: the divergence is not finite", old);
    if (r->verdict == EVAL_AGAINST_FURTHER)
        return status_fail(why, STATUS_EXCEEDED,
                           "%s: it is further from exact than %s by %.4e nats, above %.1e, the "
                           "limit of what %zu windows tell from 0",
                           file, old, r->kld.value, r->resolution, r->kld.n);
    if (r->verdict == EVAL_AGAINST_UNDECIDED)
        return status_fail(why, STATUS_USAGE,
                           "%s: not compared with %s as closely as --resolve %g asks for; see the "
                           "answer",
                           file, old, c->settings->resolve);
    return STATUS_OK;
}
