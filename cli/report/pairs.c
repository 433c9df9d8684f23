/* Paired tests between neighbours of the scoreboard: what assay compare says of each two. */
#include <stdlib.h>
#include <string.h>

#include "cli/report/html.h"
#include "cli/report/report.h"
#include "cli/results/compare.h"

/* Which figures of a comparison are shown; those of compare_windows.c. */
static const char *const kld_figures[] = {"kld", "ppl", "same_top", NULL};
static const char *const kld_heads[] = {
    "A", "B", "Mean KLD: B - A", "PPL: B - A", "Same top p %: B - A", NULL};
static const char *const ppl_figures[] = {"ppl", "nll", NULL};
static const char *const ppl_heads[] = {"A", "B", "PPL: B - A", "ln(PPL): B - A", NULL};
static const char *const task_heads[] = {
    "A", "B", "task", "tasks", "only A right", "only B right", "score %: B - A", "exact p", NULL};

static bool same_kind(const struct cli_scoreboard_run *a, const struct cli_scoreboard_run *b)
{
    return a->from.document->kind == b->from.document->kind && strcmp(a->task, b->task) == 0;
}

/* The next run of the same kind behind one that is no base, or NULL. */
static const struct cli_scoreboard_run *neighbour(const struct cli_scoreboard *board, size_t run)
{
    for (size_t i = run + 1; i < board->n && !board->runs[run].is_base; i++)
        if (!board->runs[i].is_base && same_kind(&board->runs[i], &board->runs[run]))
            return &board->runs[i];
    return NULL;
}

static enum status compare(struct cli_compare *c, const struct cli_report *r,
                           const struct cli_scoreboard_run *a, const struct cli_scoreboard_run *b,
                           struct status_why *why)
{
    const struct cli_scoreboard_run *runs[] = {a, b};
    *c = (struct cli_compare){.settings = {.n_resamples = r->n_resamples, .seed = r->seed}};
    for (size_t side = 0; side < 2; side++) {
        c->sides[side].document = *runs[side]->from.document; /* stays its owner's */
        if (runs[side]->from.document->kind == CLI_DOCUMENT_KLD)
            c->settings.candidates[side] = (int64_t)runs[side]->from.index + 1;
    }
    return cli_compare_make(c, why);
}

static const struct eval_pair_figure *figure_of(const struct cli_compare *c, const char *key,
                                                const struct cli_figure **figure)
{
    size_t i = 0;
    while (i + 1 < c->n_figures && strcmp(c->figures[i].key, key) != 0)
        i++;
    *figure = &c->figures[i];
    return &c->values[i];
}

/* A difference with its interval, strong where that does not contain 0. */
static void put_figure(struct base_file *file, const struct cli_compare *c, const char *key)
{
    const struct cli_figure *f;
    const struct eval_pair_figure *v = figure_of(c, key, &f);
    cli_html(file, "<td class=\"n\" data-value=\"%.17g\">", f->scale * v->difference);
    bool differs = v->low > 0 || v->high < 0;
    if (differs)
        cli_html(file, "<strong>");
    cli_html(file, "%.6g", f->scale * v->difference);
    if (differs)
        cli_html(file, "</strong>");
    cli_html(file, " <span class=\"error\">[%.6g, %.6g]</span></td>", f->scale * v->low,
             f->scale * v->high);
}

static void put_tasks(struct base_file *file, const struct cli_compare *c)
{
    const struct eval_pair_counts *counts = &c->counts[0];
    const struct eval_mcnemar *test = &c->tests[0];
    cli_html(file, "<td>%s</td>", c->task_kind);
    cli_report_number(file, (double)c->n_tasks, 0);
    cli_report_number(file, (double)counts->only_a, 0);
    cli_report_number(file, (double)counts->only_b, 0);
    cli_html(file,
             "<td class=\"n\" data-value=\"%.17g\">%.3f <span class=\"error\">± %.3f</span></td>",
             100 * test->difference, 100 * test->difference, 100 * test->error);
    cli_html(file, "<td class=\"n\" data-value=\"%.17g\">%.3g</td>", test->exact_p, test->exact_p);
}

static void put_pair(struct cli_report *r, const struct cli_scoreboard_run *a,
                     const struct cli_scoreboard_run *b, const char *const *figures,
                     size_t n_columns)
{
    struct cli_compare *c = malloc(sizeof *c);
    struct status_why why = {""};
    r->no_memory |= c == NULL;
    if (!c)
        return;
    enum status status = compare(c, r, a, b, &why);
    cli_html(r->file, "<tr><th scope=\"row\"><bdi>%s</bdi></th><td><bdi>%s</bdi></td>", a->file,
             b->file);
    if (status)
        cli_html(r->file, "<td colspan=\"%zu\">not compared: <bdi>%s</bdi></td>", n_columns - 2,
                 why.text);
    else if (!figures)
        put_tasks(r->file, c);
    for (size_t i = 0; !status && figures && figures[i]; i++)
        put_figure(r->file, c, figures[i]);
    cli_html(r->file, "</tr>\n");
    r->no_memory |= status == STATUS_MEMORY;
    free(c);
}

/* The pairs of documents of one kind, in a table. Returns whether there are any. */
static bool put_kind(struct cli_report *r, const struct cli_scoreboard *board,
                     enum cli_document_kind kind)
{
    const char *const *heads = kind == CLI_DOCUMENT_KLD          ? kld_heads
                               : kind == CLI_DOCUMENT_PERPLEXITY ? ppl_heads
                                                                 : task_heads;
    const char *const *figures = kind == CLI_DOCUMENT_KLD          ? kld_figures
                                 : kind == CLI_DOCUMENT_PERPLEXITY ? ppl_figures
                                                                   : NULL;
    size_t n_columns = 0;
    while (heads[n_columns])
        n_columns++;
    bool any = false;
    for (size_t i = 0; i < board->n; i++) {
        const struct cli_scoreboard_run *b =
            board->runs[i].from.document->kind == kind ? neighbour(board, i) : NULL;
        if (!b)
            continue;
        if (!any) {
            cli_report_table(r->file, "pairs",
                             kind == CLI_DOCUMENT_KLD          ? "Divergences"
                             : kind == CLI_DOCUMENT_PERPLEXITY ? "Perplexities"
                                                               : "Choice tasks");
            cli_report_heads(r->file, heads, figures ? 2 : 3);
        }
        any = true;
        put_pair(r, &board->runs[i], b, figures, n_columns);
    }
    if (any)
        cli_report_table_end(r->file);
    return any;
}

void cli_report_pairs(struct cli_report *r)
{
    bool any = put_kind(r, &r->results->of_texts, CLI_DOCUMENT_KLD);
    any |= put_kind(r, &r->results->of_texts, CLI_DOCUMENT_PERPLEXITY);
    any |= put_kind(r, &r->results->of_tasks, CLI_DOCUMENT_TASKS);
    if (any)
        cli_html(r->file,
                 "<p>Of texts: a block bootstrap over windows, %.15g resamples, seed %.15g. Of "
                 "tasks: McNemar's test.</p>\n",
                 (double)r->n_resamples, (double)r->seed);
    else
        cli_report_missing(r, "No pairs: there is one result, or one of each kind.");
}
