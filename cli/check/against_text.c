/* What assay check --against prints: the answer in a sentence, figures, the table in Markdown. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text/printable.h"
#include "cli/check/check_evaluator.h"
#include "cli/output/grid.h"
#include "cli/process/run.h"

/* Text that is put together. */
struct line {
    char *text;
    size_t n;
};

__attribute__((format(printf, 2, 3))) static void add(struct line *line, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    int n = vsnprintf(line->text + line->n, CLI_AGAINST_BYTES - line->n, format, values);
    va_end(values);
    if (n > 0)
        line->n += strlen(line->text + line->n);
}

/* The scored position that a bin's edge is, in its window. */
static size_t position_of(const struct cli_check *c, size_t edge)
{
    return c->windows.plan.first_scored + edge;
}

static void add_places(struct line *line, const struct cli_check *c)
{
    const struct eval_against_bins *axes = c->against.paired.axes;
    const struct eval_against_bins *at = &axes[EVAL_AGAINST_POSITION];
    if (at->place.found)
        add(line, ", at positions %zu to %zu of the window (%.0f %% of it, %.0f %% of the tokens)",
            position_of(c, at->items[at->place.from].from),
            position_of(c, at->items[at->place.to - 1].to) - 1, 100 * at->place.share,
            100 * at->place.tokens);
    at = &axes[EVAL_AGAINST_CONFIDENCE];
    if (at->place.found)
        add(line,
            ", where the likeliest token has %zu to %zu %% (%.0f %% of it, %.0f %% of the tokens)",
            10 * at->place.from, 10 * at->place.to, 100 * at->place.share, 100 * at->place.tokens);
    if (!axes[EVAL_AGAINST_POSITION].place.found && !at->place.found)
        add(line, ", spread over all positions and probabilities");
}

/* What is not told apart is the noise of runs, and neither the windows' nor the evaluation's. */
static bool is_of_noise(const struct cli_check *c)
{
    return c->noise.judges && c->against.paired.resolution <= c->noise.difference;
}

static void add_undecided(struct line *line, const struct cli_check *c)
{
    const struct eval_against_result *r = &c->against.paired;
    double resolve = c->settings->resolve;
    add(line, "not decided: |%.3e ± %.1e| nats per token, ", r->kld.value,
        base_unsigned_nan(r->kld.error));
    if (r->kld.n < 2)
        add(line, "and an interval takes two windows or more");
    else if (!r->n_needed)
        add(line, "and no text has the windows that %g takes", resolve);
    else if (r->n_needed > r->kld.n)
        add(line, "%zu windows do not resolve %g, which takes about %zu: record more of them",
            r->kld.n, resolve, r->n_needed);
    else if (is_of_noise(c))
        add(line, "and runs of one program differ by %.1e, which does not resolve %g",
            c->noise.difference, resolve);
    else
        add(line,
            "and the rounding of this evaluation, about %.1e, does not resolve %g: see "
            "--precision exact",
            r->resolution, resolve);
}

const char *cli_against_sentence(char out[CLI_AGAINST_BYTES], const struct cli_check *c)
{
    const struct eval_against_result *r = &c->against.paired;
    struct line line = {out, 0};
    char new[256], old[256];
    base_printable_text(new, sizeof new, c->recorded.path);
    base_printable_text(old, sizeof old, c->against.recorded.path);
    switch (r->verdict) {
    case EVAL_AGAINST_SAME_BITS:
        add(&line, "no difference: %s and %s have the same bits in %zu window%s", new, old,
            r->kld.n, status_plural(r->kld.n));
        break;
    case EVAL_AGAINST_NO_DIFFERENCE:
        if (is_of_noise(c))
            add(&line,
                "no difference between %s and %s: |%.3e| <= %.1e nats per token, which runs of one "
                "program differ by",
                new, old, r->kld.value, r->resolution);
        else
            add(&line,
                "no difference between %s and %s: |%.3e| <= %.1e nats per token, which %zu windows "
                "resolve",
                new, old, r->kld.value, r->resolution, r->kld.n);
        break;
    case EVAL_AGAINST_FURTHER:
    case EVAL_AGAINST_CLOSER:
        add(&line, "%s is %s %s by %.3e ± %.1e nats per token (z %.1f)", new,
            r->verdict == EVAL_AGAINST_FURTHER ? "further from exact than" : "closer to exact than",
            old, fabs(r->kld.value), r->kld.error, fabs(r->kld.z));
        add_places(&line, c);
        break;
    case EVAL_AGAINST_UNDECIDED:
        add_undecided(&line, c);
        break;
    }
    return out;
}

static void print_paired(const char *label, const struct eval_paired *p)
{
    printf("%s: %11.4e ± %.1e, 95 %% interval %.4e to %.4e\n", label, base_unsigned_nan(p->value),
           base_unsigned_nan(p->error), base_unsigned_nan(p->value - p->half_width),
           base_unsigned_nan(p->value + p->half_width));
}

static void print_bins(const struct cli_check *c, enum eval_against_axis axis)
{
    const struct eval_against_bins *bins = &c->against.paired.axes[axis];
    bool positions = axis == EVAL_AGAINST_POSITION;
    printf("\n%s\ttokens\tkld\tkld of old\tdifference\terror\n",
           positions ? "positions" : "likeliest %");
    for (size_t k = 0; k < bins->n; k++) {
        const struct eval_against_bin *bin = &bins->items[k];
        if (positions)
            printf("%zu-%zu", position_of(c, bin->from), position_of(c, bin->to) - 1);
        else
            printf("%zu-%zu", 10 * bin->from, 10 * bin->to);
        printf("\t%zu\t%.4e\t%.4e\t%.4e\t%.1e\n", bin->n_tokens, bin->a, bin->b,
               bin->difference.value, base_unsigned_nan(bin->difference.error));
    }
}

void cli_against_print(const struct cli_check *c)
{
    if (!c->settings->against)
        return;
    char old[BASE_PATH_BYTES];
    const struct eval_against_result *r = &c->against.paired;
    printf("\n====== Against %s, nats ======\n",
           base_printable_text(old, sizeof old, c->against.recorded.path));
    print_paired("KL, difference  ", &r->kld);
    print_paired("NLL, difference ", &r->nll);
    printf("Windows         : %zu, of which each is a pair\n", r->kld.n);
    if (!isnan(c->settings->resolve))
        printf("Windows for %-4g: %zu\n", c->settings->resolve, r->n_needed);
    printf("Old, beyond file: %11.4e\n", base_unsigned_nan(c->against.result.beyond));
    for (int axis = 0; axis < EVAL_AGAINST_AXES; axis++)
        print_bins(c, (enum eval_against_axis)axis);
}

/* The columns of the table, as pull requests to llama.cpp are asked for them. */
enum { LABEL, PPL, RATIO, KLD, BEYOND, P99_9, MOST, RMS_DP, SAME_TOP, N_COLUMNS };
static const char *const heads[N_COLUMNS] = {
    "",           "PPL",         "PPL / exact PPL", "KLD from exact", "beyond the file",
    "KLD 99.9 %", "Maximum KLD", "RMS Δp %",        "Same top p %"};

__attribute__((format(printf, 4, 5))) static void put(const struct cli_grid *g, size_t row,
                                                      size_t column, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vsnprintf(cli_grid_cell(g, row, column), CLI_CELL_BYTES, format, values);
    va_end(values);
}

static void put_label(const struct cli_grid *g, size_t row, const char *label, const char *path)
{
    char name[96];
    put(g, row, LABEL, "%s: %s", label,
        base_printable_text(name, sizeof name, base_file_name(path)));
}

/* Perplexities without what the file makes of improbable tokens, which both files do alike. */
static void put_recording(const struct cli_grid *g, size_t row, const struct eval_check_result *r)
{
    const struct eval_kld_figures *f = &r->kld.figures;
    double ratio = exp(r->nll_beyond.value), ppl = f->base_ppl.value * ratio;
    put(g, row, PPL, "%.6f ± %.6f", ppl, ppl * base_estimate_error(f->nll));
    put(g, row, RATIO, "%.6f ± %.6f", ratio, ratio * base_estimate_error(r->nll_beyond));
    put(g, row, KLD, "%.4e ± %.1e", f->kld.value, base_estimate_error(f->kld));
    put(g, row, BEYOND, "%.4e", r->beyond);
    put(g, row, P99_9, "%.4e", r->kld.kld_quantiles[1].value);
    put(g, row, MOST, "%.4e", r->kld.kld_quantiles[0].value);
    put(g, row, RMS_DP, "%.4f ± %.4f", 100 * f->rms_dp.value, 100 * base_estimate_error(f->rms_dp));
    put(g, row, SAME_TOP, "%.3f ± %.3f", 100 * f->same_top.value,
        100 * base_estimate_error(f->same_top));
}

/* exp of the difference of the mean NLLs is the ratio of the perplexities. */
static void put_difference(const struct cli_grid *g, size_t row,
                           const struct eval_against_result *r)
{
    double ratio = exp(r->nll.value);
    put(g, row, LABEL, "after against before, paired");
    put(g, row, PPL, "times %.6f ± %.6f", ratio, ratio * r->nll.error);
    put(g, row, KLD, "%.4e ± %.1e", r->kld.value, r->kld.error);
    put(g, row, BEYOND, "%.4e ± %.1e", r->kld.value, r->kld.error);
}

enum { EXACT = 1, BEFORE, AFTER, DIFFERENCE, N_ROWS };

enum status cli_against_print_markdown(const struct cli_check *c, struct status_why *why)
{
    const struct eval_kld_figures *f = &c->result.kld.figures;
    struct cli_grid grid;
    enum status status = cli_grid_make(&grid, N_ROWS, N_COLUMNS, why);
    if (status)
        return status;
    for (size_t k = 0; k < N_COLUMNS; k++)
        put(&grid, 0, k, "%s", heads[k]);
    put_label(&grid, EXACT, "exact", c->model.path);
    put(&grid, EXACT, PPL, "%.6f ± %.6f", f->base_ppl.value, base_estimate_error(f->base_ppl));
    put_label(&grid, BEFORE, "before", c->against.recorded.path);
    put_recording(&grid, BEFORE, &c->against.result);
    put_label(&grid, AFTER, "after", c->recorded.path);
    put_recording(&grid, AFTER, &c->result);
    put_difference(&grid, DIFFERENCE, &c->against.paired);
    cli_grid_print_markdown(&grid, 1);
    printf("\n%zu tokens in %zu windows of %zu; ± is one standard error, of differences over pairs "
           "of windows; PPL without what the file's 16 bits make\n",
           c->result.kld.n_tokens, c->result.kld.n_windows, c->windows.plan.window);
    cli_flush();
    cli_grid_free(&grid);
    return STATUS_OK;
}
