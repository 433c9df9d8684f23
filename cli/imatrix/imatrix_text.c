/* The lines of assay imatrix. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text/printable.h"
#include "base/text/quote.h"
#include "cli/imatrix/imatrix_command.h"
#include "cli/process/run.h"
#include "cli/process/say.h"

enum { MOST_FEW = 20, MOST_NAMES = 4, NAME_BYTES = 300 };

/** A tensor's name without its block: "ffn_down.weight". */
static const char *part_of(const char *name)
{
    const char *dot = strncmp(name, "blk.", 4) == 0 ? strchr(name + 4, '.') : NULL;
    return dot ? dot + 1 : name;
}

/** The tensors of one list that another has not. */
struct difference {
    const struct imat_missing_list *in, *not_in;
};

/** The names of those that are treated so, the first of them; returns how many there are. */
static size_t list_names(const struct difference *d, enum imat_treatment treatment,
                         char out[NAME_BYTES])
{
    size_t n = 0;
    *out = '\0';
    for (size_t i = 0; i < d->in->n; i++) {
        const struct imat_missing *missing = &d->in->items[i];
        if (missing->treatment == treatment && !imat_missing_has(d->not_in, missing) &&
            n++ < MOST_NAMES)
            base_list_name(out, NAME_BYTES, missing->name);
    }
    return n;
}

/** A line for each treatment: what begins it, the names, and what llama-quantize does. */
static void say_treatments(const struct difference *d, const char *beginning)
{
    static const char *const what[] = {
        [IMAT_STOPPED] = "stops where one is to become " IMAT_TYPES_THAT_STOP
                         " (--tensor-type gives it another type)",
        [IMAT_ALIKE] = "weighs their columns alike",
        [IMAT_KEPT] = "keeps their type",
    };
    for (size_t t = 0; t < sizeof what / sizeof *what; t++) {
        char names[NAME_BYTES], shown[NAME_BYTES], more[64] = "";
        size_t n = list_names(d, (enum imat_treatment)t, names);
        if (n > MOST_NAMES)
            snprintf(more, sizeof more, " and %zu more, which --json lists", n - MOST_NAMES);
        if (n > 0)
            cli_say("assay: %s%s %s%s: llama-quantize %s\n", t == IMAT_STOPPED ? "note: " : "",
                    beginning, base_printable_text(shown, sizeof shown, names), more, what[t]);
    }
}

void cli_imatrix_say_missing(const struct cli_imatrix *im)
{
    static const struct imat_missing_list none = {0};
    say_treatments(&(struct difference){&im->foreseen, &none}, "no entry for");
}

/** Those that were to have an entry, but no row that counts met them. */
static void say_unforeseen(const struct cli_imatrix *im)
{
    say_treatments(&(struct difference){&im->missing, &im->foreseen},
                   "no row counted, so no entry, for");
}

static void print_beginning(const void *self)
{
    const struct cli_imatrix *im = self;
    const struct eval_plan *plan = &im->windows.plan;
    size_t batch = im->e.units->most.n_tokens;
    cli_say("assay: collecting over %zu window%s of %zu tokens, %zu at a time\n", plan->n_windows,
            status_plural(plan->n_windows), plan->window, batch / plan->n_inputs);
    if (im->nextn.model)
        cli_say("assay: blk.%u, which predicts the token after the next, is collected, too\n",
                model_hparams(im->nextn.model)->n_layers);
}

/** The line of all tensors that have entry i's part, if it is the first of them. */
static void print_part(const struct imat_matrix *m, size_t i)
{
    const char *part = part_of(m->entries[i].name);
    struct cli_imatrix_rows all = {.least = UINT64_MAX};
    size_t n_tensors = 0;
    uint64_t n_matrices = 0;
    for (size_t j = 0; j < m->n; j++) {
        if (strcmp(part_of(m->entries[j].name), part) != 0)
            continue;
        if (j < i)
            return;
        struct cli_imatrix_rows rows = cli_imatrix_rows(&m->entries[j], 0);
        all.least = rows.least < all.least ? rows.least : all.least;
        all.most = rows.most > all.most ? rows.most : all.most;
        n_matrices += m->entries[j].n_matrices;
        n_tensors++;
    }
    printf("%-28s %7zu %9" PRIu64 " %8" PRIu64 " %11" PRIu64 " %11" PRIu64 "\n", part, n_tensors,
           n_matrices, m->entries[i].n_columns, all.least, all.most);
}

/** Whether the tensor before has the same rows, as up has gate's. */
static bool repeats(const struct imat_matrix *m, size_t i)
{
    const struct imat_entry *e = &m->entries[i], *before = i ? e - 1 : NULL;
    size_t n_block = (size_t)(part_of(e->name) - e->name);
    return before && before->n_matrices == e->n_matrices &&
           strncmp(before->name, e->name, n_block) == 0 &&
           memcmp(before->counts, e->counts, e->n_matrices * sizeof *e->counts) == 0;
}

static void print_few(const struct imat_matrix *m, uint64_t few)
{
    size_t n_shown = 0, n_few = 0, n_none = 0;
    char name[NAME_BYTES];
    for (size_t i = 0; i < m->n; i++) {
        const struct imat_entry *e = &m->entries[i];
        if (e->n_matrices < 2 || repeats(m, i))
            continue;
        for (size_t j = 0; j < e->n_matrices; j++) {
            if (e->counts[j] >= few)
                continue;
            n_none += e->counts[j] == 0;
            if (n_few++ == 0)
                printf("\n%-28s %7s %9s\n", "few rows", "expert", "rows");
            if (n_shown < MOST_FEW && ++n_shown)
                printf("%-28s %7zu %9" PRIu64 "\n", base_printable_text(name, sizeof name, e->name),
                       j, e->counts[j]);
        }
    }
    if (n_few > n_shown)
        printf("... and %zu more, which --json lists\n", n_few - n_shown);
    if (n_few)
        cli_say(
            "assay: warning: %zu expert%s fewer than %" PRIu64
            " rows, %zu of them none: their weights "
            "are quantised by chance, or as if all columns were alike; a longer text has more\n",
            n_few, n_few == 1 ? " has" : "s have", few, n_none);
}

static void print_perplexity(const struct cli_imatrix *im)
{
    const struct eval_figures *f = &im->result.figures;
    if (im->settings->no_ppl || !im->result.n_tokens)
        return;
    if (isinf(f->ppl.value))
        printf("\nFinal estimate: mean NLL = %.4lf +/- %.5lf\n", base_unsigned_nan(f->nll.value),
               base_unsigned_nan(f->nll.error));
    else
        printf("\nFinal estimate: PPL = %.4lf +/- %.5lf\n", base_unsigned_nan(f->ppl.value),
               base_unsigned_nan(f->ppl.error));
}

/** Where the run could end early: why it did, or what is missing. */
static void print_stop(const struct cli_imatrix *im)
{
    const struct imat_stop *stop = &im->units.stop;
    size_t n = im->e.units->n_enough;
    if (isnan(stop->change) && !stop->rows)
        return;
    if (n)
        printf("\nStopped after %zu of %zu windows", n, im->windows.n_laid);
    else
        printf("\nNot stopped");
    if (!isnan(stop->change) && isnan(stop->last_change))
        printf("; no change was looked at, which takes %d windows", 2 * IMAT_STOP_EVERY);
    else if (!isnan(stop->change))
        printf("; the largest change of a matrix is %.6f, %g was wanted", stop->last_change,
               stop->change);
    if (stop->rows)
        printf("; the fewest rows of a matrix are %" PRIu64 ", %" PRIu64 " were wanted",
               stop->least_rows, stop->rows);
    putchar('\n');
}

static void print_end(void *self)
{
    const struct cli_imatrix *im = self;
    const struct imat_matrix *m = &im->matrix;
    const struct eval_plan *plan = &im->windows.plan;
    size_t n_done = cli_imatrix_n_windows(im);
    if (n_done < plan->n_windows) {
        printf("Incomplete: %zu of %zu window%s, nothing is written\n", n_done, plan->n_windows,
               status_plural(plan->n_windows));
    } else {
        char name[BASE_PATH_BYTES];
        printf("Importance matrices of %zu tensor%s from %zu window%s of %s%zu tokens: %s\n\n",
               m->n, status_plural(m->n), n_done, status_plural(n_done),
               im->windows.documents.n ? "up to " : "", plan->window,
               base_printable_text(name, sizeof name, im->settings->out_file));
        printf("%-28s %7s %9s %8s %11s %11s\n", "tensors", "number", "matrices", "columns",
               "rows, least", "most");
        for (size_t i = 0; i < m->n; i++)
            print_part(m, i);
        print_few(m, cli_imatrix_few_rows(im));
        say_unforeseen(im);
        print_stop(im);
        print_perplexity(im);
    }
    cli_flush();
    cli_print_speed(&im->e);
}

const struct cli_lines cli_imatrix_lines = {print_beginning, NULL, print_end};
