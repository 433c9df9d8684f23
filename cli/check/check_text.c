/* The lines of assay check. */
#include <math.h>
#include <stdio.h>

#include "base/text/printable.h"
#include "cli/check/check_evaluator.h"
#include "cli/output/curve.h"
#include "cli/output/passage.h"
#include "cli/process/run.h"
#include "cli/process/say.h"

static void print_beginning(const void *self)
{
    const struct cli_check *c = self;
    const struct eval_plan *plan = &c->windows.plan;
    cli_say("assay: checking %zu window%s of %zu tokens, %zu scored in each, batches of %zu "
            "tokens\n",
            plan->n_windows, status_plural(plan->n_windows), plan->window, plan->n_scored,
            c->e.units->most.n_tokens);
}

static void print_estimate(const char *label, struct base_estimate x)
{
    printf("%s: %11.4e ± %.1e\n", label, base_unsigned_nan(x.value),
           base_unsigned_nan(base_estimate_error(x)));
}

static void print_number(const char *label, double x)
{
    printf("%s: %11.4e\n", label, base_unsigned_nan(x));
}

static void print_divergence(const struct eval_check_result *r)
{
    static const struct {
        const char *label;
        size_t level; /* of eval_quantile_levels */
    } lines[] = {{"Maximum         ", 0}, {"99.9%           ", 1}, {"99.0%           ", 2},
                 {"95.0%           ", 3}, {"90.0%           ", 4}, {"Median          ", 6}};
    puts("\n====== KL(exact || recorded), nats ======");
    print_estimate("Mean            ", r->kld.figures.kld);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        print_number(lines[i].label, r->kld.kld_quantiles[lines[i].level].value);
    printf("The file's share: %11.4e ± %.1e, %.2f %% of the mean\n",
           base_unsigned_nan(r->floor.value), base_unsigned_nan(base_estimate_error(r->floor)),
           100 * base_unsigned_nan(r->share));
    print_number("Beyond the file ", r->beyond);
}

static void print_nll(const struct eval_check_result *r)
{
    const struct eval_kld_figures *f = &r->kld.figures;
    puts("\n====== NLL(recorded) - NLL(exact) of the right token, nats ======");
    print_estimate("Mean            ", f->log_ratio);
    print_number("RMS             ", r->nll.rms);
    print_number("Largest         ", r->nll.max);
    printf("The file's share: %11.4e RMS, %.4e largest\n", base_unsigned_nan(r->floor_nll.rms),
           base_unsigned_nan(r->floor_nll.max));

    puts("\n====== As people compare it ======");
    bool large = isinf(f->base_ppl.value) || isinf(f->ppl.value);
    struct base_estimate exact = large ? f->base_nll : f->base_ppl;
    struct base_estimate recorded = large ? f->nll : f->ppl;
    printf("%s, exact      : %11.6f ± %.6f\n", large ? "NLL" : "PPL",
           base_unsigned_nan(exact.value), base_unsigned_nan(base_estimate_error(exact)));
    printf("%s, recorded   : %11.6f ± %.6f\n", large ? "NLL" : "PPL",
           base_unsigned_nan(recorded.value), base_unsigned_nan(base_estimate_error(recorded)));
    printf("RMS Δp          : %11.6f %%\n", 100 * base_unsigned_nan(f->rms_dp.value));
    printf("Same top p      : %11.3f ± %.3f %%\n", 100 * base_unsigned_nan(f->same_top.value),
           100 * base_unsigned_nan(base_estimate_error(f->same_top)));
}

/* A line each: the figures, then the text before the token and the token in angle brackets. */
static void print_worst(const struct cli_check *c)
{
    const struct eval_table *exact = &c->windows.tables[0], *recorded = &c->windows.tables[1];
    puts("\nwindow\tposition\tkld\tof the file\tp exact\tp recorded\ttext");
    for (size_t k = 0; k < c->result.kld.n_worst; k++) {
        struct cli_passage token = {&c->windows, model_tokenizer(c->model.model),
                                    c->result.kld.worst[k]};
        size_t w = token.place.window, i = token.place.index;
        printf("%zu\t%zu\t%.4e\t%.4e\t%.6f\t%.6f\t", w, cli_passage_position(&token),
               base_unsigned_nan(eval_table_row(recorded, EVAL_KL, w)[i]),
               base_unsigned_nan(eval_check_floor_of(c->check, w, i).kld),
               exp(eval_table_row(exact, EVAL_LOG_PROB, w)[i]),
               exp(eval_table_row(recorded, EVAL_LOG_PROB, w)[i]));
        cli_print_passage(&token);
    }
}

static void print_limits(const struct cli_check *c)
{
    struct cli_check_limit limits[CLI_CHECK_LIMITS];
    cli_check_limits(c, limits);
    for (size_t i = 0; i < CLI_CHECK_LIMITS; i++)
        if (!isnan(limits[i].limit))
            printf("\n%s: %s is %.4e, %s %g\n",
                   limits[i].found <= limits[i].limit ? "Within the limit" : "Above the limit",
                   limits[i].what, base_unsigned_nan(limits[i].found), limits[i].option,
                   limits[i].limit);
}

static void print_doubt(const struct cli_check *c)
{
    const struct eval_kld_figures *f = &c->result.kld.figures;
    bool doubted = c->budget.verdict == ACT_DIFFERS || c->budget.verdict == ACT_OTHER_ROUNDING;
    if (doubted && c->n_fits == 1) /* else the fits tell */
        cli_say("assay: note: %s: was it recorded from another model, or another quantisation of "
                "this one, with a key/value cache of few bits, or by another engine? Its "
                "perplexity is %.4f, this model's %.4f; --or MODEL tells which of several models "
                "it fits best\n",
                c->recorded.path, f->ppl.value, f->base_ppl.value);
}

/* What is told without --markdown. */
static void print_all(const struct cli_check *c)
{
    const struct eval_kld_result *r = &c->result.kld;
    print_divergence(&c->result);
    cli_again_print(c);
    cli_budget_print(&c->budget);
    print_nll(&c->result);
    if (c->settings->divergence.curve.wanted)
        cli_curve_print(&c->settings->divergence.curve, &c->windows.plan, &c->windows.tables[1],
                        true);
    if (r->n_worst)
        print_worst(c);
    for (size_t i = 0; c->traces && i < r->n_worst; i++)
        if (c->traces[i].n)
            cli_worst_print(&c->traces[i], &c->windows);
    cli_fits_print(c);
    cli_against_print(c);
    print_limits(c);
}

static void print_end(void *self)
{
    const struct cli_check *c = self;
    const struct eval_kld_result *r = &c->result.kld;
    char sentence[CLI_AGAINST_BYTES], verdict[CLI_BUDGET_BYTES];
    if (c->settings->again.n && r->n_windows)
        printf("%s\n\n", cli_again_sentence(sentence, c));
    if (c->settings->against && r->n_windows)
        printf("%s\n\n", cli_against_sentence(sentence, c));
    if (!c->settings->markdown && r->n_windows)
        printf("%s\n\n", cli_budget_sentence(verdict, &c->budget));
    if (!c->settings->markdown || !r->complete)
        printf("%s: %zu token%s scored in %zu of %zu window%s\n",
               r->complete ? "Checked" : "Incomplete", r->n_tokens, status_plural(r->n_tokens),
               r->n_windows, c->windows.plan.n_windows, status_plural(c->windows.plan.n_windows));
    if (r->n_windows && !c->settings->markdown)
        print_all(c);
    cli_flush();
    if (r->n_windows)
        print_doubt(c);
    cli_print_speed(&c->e);
}

const struct cli_lines cli_check_lines = {print_beginning, NULL, print_end};
