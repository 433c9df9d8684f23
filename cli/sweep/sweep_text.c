/* The lines of assay sweep: a table with a line for each choice. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/printable.h"
#include "cli/process/run.h"
#include "cli/process/say.h"
#include "cli/sweep/sweep_evaluator.h"

const char *const cli_sweep_doubts[] = {
    [CLI_SWEEP_CLEAR] = NULL,
    [CLI_SWEEP_BELOW_ERROR] = "error",
    [CLI_SWEEP_BELOW_ROUNDING] = "rounding",
    [CLI_SWEEP_NO_VERSION] = "no_version",
    [CLI_SWEEP_NONFINITE] = "nonfinite",
};

static const char *const marks[] = {
    [CLI_SWEEP_CLEAR] = "",
    [CLI_SWEEP_BELOW_ERROR] = "  (e)",
    [CLI_SWEEP_BELOW_ROUNDING] = "  (r)",
    [CLI_SWEEP_NO_VERSION] = "  (v)",
    [CLI_SWEEP_NONFINITE] = "  (n)",
};
static const char *const legends[] = {
    [CLI_SWEEP_BELOW_ERROR] =
        "(e) less than twice its paired standard error: not told from 0 on this text",
    [CLI_SWEEP_BELOW_ROUNDING] =
        "(r) so small that the rounding of sums and activations may have made it; see --precision",
    [CLI_SWEEP_NO_VERSION] = "(v) a tensor is no version of the base's: another model's, or "
                             "damaged; assay recipe leaves the choice out",
    [CLI_SWEEP_NONFINITE] = "(n) scores are not finite",
};
enum { N_DOUBTS = sizeof legends / sizeof *legends };

static void print_beginning(const void *self)
{
    const struct cli_sweep *s = self;
    const struct eval_plan *plan = &s->windows.plan;
    cli_say("assay: %zu group%s of tensors, %zu choice%s, each on %zu window%s of %zu tokens, %zu "
            "at a time; %zu tensor%s in no group\n",
            s->groups.n, status_plural(s->groups.n), s->groups.n_choices,
            status_plural(s->groups.n_choices), plan->n_windows, status_plural(plan->n_windows),
            plan->window, s->trials.batch_windows, s->groups.n_rest,
            status_plural(s->groups.n_rest));
}

/** Widths of the columns of texts. */
struct widths {
    int name, type;
};

static struct widths measure(const struct cli_sweep *s)
{
    struct widths w = {5, 4};
    for (size_t i = 0; i < s->groups.n_choices; i++) {
        const struct cli_sweep_choice *c = &s->groups.choices[i];
        int name = (int)strlen(s->groups.items[c->group].name), type = (int)strlen(c->type);
        w.name = name > w.name ? name : w.name;
        w.type = type > w.type ? type : w.type;
    }
    w.name = w.name > 60 ? 60 : w.name;
    return w;
}

static void print_choice(const struct cli_sweep *s, size_t i, struct widths w)
{
    const struct cli_sweep_choice *c = &s->groups.choices[i];
    const struct cli_sweep_group *g = &s->groups.items[c->group];
    struct cli_sweep_figures f = cli_sweep_figures(s, i);
    char name[CLI_SWEEP_NAME_BYTES];
    printf("%-*s  %-*s  %10.3f", w.name, base_printable_text(name, sizeof name, g->name), w.type,
           c->type, ((double)g->n_bytes - (double)c->n_bytes) / 1e6);
    if (!f.known) {
        puts("  not evaluated");
        return;
    }
    printf("  %11.4e ± %7.1e", base_unsigned_nan(f.excess.value),
           base_unsigned_nan(base_estimate_error(f.excess)));
    if (isnan(f.per_bit))
        printf("  %11s", "-");
    else
        printf("  %11.3e", f.per_bit);
    printf("  %s%s\n",
           base_printable_text(name, sizeof name, base_file_name(s->candidates[c->candidate].path)),
           marks[f.doubt]);
}

static void print_reference(const struct cli_sweep *s)
{
    struct cli_sweep_figures r = cli_sweep_reference(s);
    char name[BASE_PATH_BYTES];
    if (s->around.model && r.known)
        printf("%s itself: KLD %.6e ± %.1e, mean NLL %.6f (base %.6f); below is what each "
               "choice adds to the KLD\n\n",
               base_printable_text(name, sizeof name, base_file_name(s->around.path)),
               r.kld.kld.value, base_estimate_error(r.kld.kld), r.kld.nll.value,
               r.kld.base_nll.value);
}

/** A choice and what its place in the table depends on. */
struct line {
    size_t choice;
    double kld; /* that it adds */
};

/* The largest first; those that are not known last; of equals as in the model. */
static int compare_lines(const void *a, const void *b)
{
    const struct line *x = a, *y = b;
    double p = isnan(x->kld) ? -(double)INFINITY : x->kld;
    double q = isnan(y->kld) ? -(double)INFINITY : y->kld;
    if (p < q || p > q)
        return p < q ? 1 : -1;
    return x->choice < y->choice ? -1 : x->choice > y->choice;
}

static void print_lines(const struct cli_sweep *s, struct widths w)
{
    size_t n = s->groups.n_choices;
    struct line *lines = calloc(n + 1, sizeof *lines);
    for (size_t i = 0; lines && i < n; i++) {
        struct cli_sweep_figures f = cli_sweep_figures(s, i);
        lines[i] = (struct line){i, f.known ? f.excess.value : (double)NAN};
    }
    if (lines && s->settings->sort == CLI_SWEEP_BY_KLD)
        qsort(lines, n, sizeof *lines, compare_lines);
    for (size_t i = 0; i < n; i++)
        print_choice(s, lines ? lines[i].choice : i, w);
    free(lines);
}

/* From here on the sum of single costs is far from what they cost together. */
static const double far_factor = 1.25;

/* What a candidate's choices cost all at once, and one at a time. */
static void print_together(const struct cli_sweep *s)
{
    bool far = false;
    for (size_t k = 0; k < s->n_candidates; k++) {
        struct cli_sweep_together t = cli_sweep_together(s, k);
        double cost = t.figures.excess.value, ratio = t.sum / cost;
        char name[BASE_PATH_BYTES];
        if (!t.figures.known)
            continue;
        printf(
            "all %zu choices of %s at once: %.4e ± %.1e nats; the sum of the single ones is %.4e",
            t.n_choices,
            base_printable_text(name, sizeof name, base_file_name(s->candidates[k].path)),
            base_unsigned_nan(cost), base_unsigned_nan(base_estimate_error(t.figures.excess)),
            base_unsigned_nan(t.sum));
        if (t.figures.doubt == CLI_SWEEP_CLEAR && !(ratio < far_factor && ratio > 1 / far_factor)) {
            printf(", %.2g times that", ratio);
            far = true;
        }
        putchar('\n');
    }
    if (far)
        puts("Costs do not add up where so much is lost: a recipe's prediction is as far off for "
             "a mixture of such choices, and better for one with few of them.");
}

static void print_table(void *self)
{
    const struct cli_sweep *s = self;
    bool doubts[N_DOUBTS] = {false};
    if (s->trials.units.n_finished == 0)
        return;
    struct widths w = measure(s);
    print_reference(s);
    printf("%-*s  %-*s  %10s  %21s  %11s  candidate\n", w.name,
           s->settings->by || s->settings->groups.n ? "group" : "tensor", w.type, "type",
           "saved (MB)", "KLD (nats)", "KLD per bit");
    print_lines(s, w);
    for (size_t i = 0; i < s->groups.n_choices; i++)
        doubts[cli_sweep_figures(s, i).doubt] = true;
    print_together(s);
    for (size_t d = 1; d < N_DOUBTS; d++)
        if (doubts[d])
            puts(legends[d]);
    cli_flush();
    cli_print_speed(&s->e);
}

const struct cli_lines cli_sweep_lines = {print_beginning, NULL, print_table};
