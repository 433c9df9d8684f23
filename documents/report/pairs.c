/* Paired tests between neighbours of the scoreboard: what assay compare says of each two. */
#include <stdlib.h>
#include <string.h>

#include "documents/report/html.h"
#include "documents/report/report.h"
#include "documents/results/compare.h"

/* Which figures of a comparison are shown; those of compare_windows.c. */
static const char *const kld_figures[] = {"kld", "ppl", "same_top", NULL};
static const char *const kld_heads[] = {
    "A", "B", "Mean KLD: B - A", "PPL: B - A", "Same top p %: B - A", NULL};
static const char *const ppl_figures[] = {"ppl", "nll", NULL};
static const char *const ppl_heads[] = {"A", "B", "PPL: B - A", "ln(PPL): B - A", NULL};
static const char *const task_heads[] = {
    "A", "B", "task", "tasks", "only A right", "only B right", "score %: B - A", "exact p", NULL};

static bool same_kind(const struct doc_scoreboard_run *a, const struct doc_scoreboard_run *b)
{
    return a->from.document->kind == b->from.document->kind && strcmp(a->task, b->task) == 0;
}

/* The next run of the same kind after one that is no base, or NULL. */
static const struct doc_scoreboard_run *neighbour(const struct doc_scoreboard *board, size_t run)
{
    for (size_t i = run + 1; i < board->n && !board->runs[run].is_base; i++)
        if (!board->runs[i].is_base && same_kind(&board->runs[i], &board->runs[run]))
            return &board->runs[i];
    return NULL;
}

static enum status compare(struct doc_compare *c, const struct doc_report *r,
                           const struct doc_scoreboard_run *a, const struct doc_scoreboard_run *b,
                           struct status_why *why)
{
    const struct doc_scoreboard_run *runs[] = {a, b};
    *c = (struct doc_compare){.settings = {.n_resamples = r->n_resamples, .seed = r->seed}};
    for (size_t side = 0; side < 2; side++) {
        c->sides[side].document = *runs[side]->from.document; /* stays its owner's */
        if (runs[side]->from.document->kind == DOC_KLD)
            c->settings.candidates[side] = (int64_t)runs[side]->from.index + 1;
    }
    return doc_compare_make(c, why);
}

static const struct doc_pair_figure *figure_of(const struct doc_compare *c, const char *key,
                                               const struct doc_figure **figure)
{
    size_t i = 0;
    while (i + 1 < c->n_figures && strcmp(c->figures[i].key, key) != 0)
        i++;
    *figure = &c->figures[i];
    return &c->values[i];
}

/* A difference with its interval, strong where that does not contain 0. */
static void put_figure(struct base_file *file, const struct doc_compare *c, const char *key)
{
    const struct doc_figure *f;
    const struct doc_pair_figure *v = figure_of(c, key, &f);
    doc_html(file, "<td class=\"n\" data-value=\"%.17g\">", f->scale * v->difference);
    bool differs = v->low > 0 || v->high < 0;
    if (differs)
        doc_html(file, "<strong>");
    doc_html(file, "%.6g", f->scale * v->difference);
    if (differs)
        doc_html(file, "</strong>");
    doc_html(file, " <span class=\"error\">[%.6g, %.6g]</span></td>", f->scale * v->low,
             f->scale * v->high);
}

static void put_tasks(struct base_file *file, const struct doc_compare *c)
{
    const struct doc_pair_counts *counts = &c->counts[0];
    const struct doc_mcnemar *test = &c->tests[0];
    doc_html(file, "<td>%s</td>", c->task_kind);
    doc_report_number(file, (double)c->n_tasks, 0);
    doc_report_number(file, (double)counts->only_a, 0);
    doc_report_number(file, (double)counts->only_b, 0);
    doc_html(file,
             "<td class=\"n\" data-value=\"%.17g\">%.3f <span class=\"error\">± %.3f</span></td>",
             100 * test->difference, 100 * test->difference, 100 * test->error);
    doc_html(file, "<td class=\"n\" data-value=\"%.17g\">%.3g</td>", test->exact_p, test->exact_p);
}

static void put_pair(struct doc_report *r, const struct doc_scoreboard_run *a,
                     const struct doc_scoreboard_run *b, const char *const *figures,
                     size_t n_columns)
{
    struct doc_compare *c = malloc(sizeof *c);
    struct status_why why = {""};
    r->no_memory |= c == NULL;
    if (!c)
        return;
    enum status status = compare(c, r, a, b, &why);
    doc_report_row(r->file, a->label, b->label);
    if (status)
        doc_html(r->file, "<td colspan=\"%zu\">not compared: <bdi>%s</bdi></td>", n_columns - 2,
                 why.text);
    else if (!figures)
        put_tasks(r->file, c);
    for (size_t i = 0; !status && figures && figures[i]; i++)
        put_figure(r->file, c, figures[i]);
    doc_html(r->file, "</tr>\n");
    r->no_memory |= status == STATUS_MEMORY;
    free(c);
}

/* The pairs of documents of one kind, in a table. Returns whether there are any. */
static bool put_kind(struct doc_report *r, const struct doc_scoreboard *board, enum doc_kind kind)
{
    const char *const *heads = kind == DOC_KLD          ? kld_heads
                               : kind == DOC_PERPLEXITY ? ppl_heads
                                                        : task_heads;
    const char *const *figures = kind == DOC_KLD          ? kld_figures
                                 : kind == DOC_PERPLEXITY ? ppl_figures
                                                          : NULL;
    size_t n_columns = 0;
    while (heads[n_columns])
        n_columns++;
    bool any = false;
    for (size_t i = 0; i < board->n; i++) {
        const struct doc_scoreboard_run *b =
            board->runs[i].from.document->kind == kind ? neighbour(board, i) : NULL;
        if (!b)
            continue;
        if (!any) {
            doc_report_table(r->file, "pairs",
                             kind == DOC_KLD          ? "Divergences"
                             : kind == DOC_PERPLEXITY ? "Perplexities"
                                                      : "Choice tasks");
            doc_report_heads(r->file, heads, figures ? 2 : 3);
        }
        any = true;
        put_pair(r, &board->runs[i], b, figures, n_columns);
    }
    if (any)
        doc_report_table_end(r->file);
    return any;
}

void doc_report_pairs(struct doc_report *r)
{
    bool any = put_kind(r, &r->results->of_texts, DOC_KLD);
    any |= put_kind(r, &r->results->of_texts, DOC_PERPLEXITY);
    any |= put_kind(r, &r->results->of_tasks, DOC_TASKS);
    if (any)
        doc_html(r->file,
                 "<p>Texts have a block bootstrap over windows, %.15g resamples, seed %.15g. "
                 "Tasks have McNemar's test.</p>\n",
                 (double)r->n_resamples, (double)r->seed);
    else
        doc_report_missing(r, "No pairs: there is one result, or one of each kind.");
}
