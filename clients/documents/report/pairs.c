/* Paired tests between neighbours of the scoreboard: what assay compare says of each two. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clients/documents/report/html.h"
#include "clients/documents/report/report.h"

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
    return doc_of(a->from)->kind == doc_of(b->from)->kind && strcmp(a->task, b->task) == 0;
}

/* Whether two runs are of the same inputs; of tasks the comparison itself tells. */
static bool can_be_compared(const struct doc_scoreboard_run *a, const struct doc_scoreboard_run *b)
{
    enum doc_kind kind = doc_of(a->from)->kind;
    return kind == DOC_TASKS ||
           doc_runs_comparable(a, b, kind == DOC_KLD ? DOC_METRIC_KLD : DOC_METRIC_PPL);
}

/* The next run of the same kind and the same inputs after one that is no base, or NULL. */
static const struct doc_scoreboard_run *neighbour(const struct doc_scoreboard *board, size_t run)
{
    for (size_t i = run + 1; i < board->n && !board->runs[run].is_base; i++)
        if (!board->runs[i].is_base && same_kind(&board->runs[i], &board->runs[run]) &&
            can_be_compared(&board->runs[run], &board->runs[i]))
            return &board->runs[i];
    return NULL;
}

enum status doc_report_compare(struct doc_compare *c, const struct doc_report *r,
                               const struct doc_scoreboard_run *a,
                               const struct doc_scoreboard_run *b, struct status_why *why)
{
    const struct doc_scoreboard_run *runs[] = {a, b};
    char numbers[2][24];
    *c = (struct doc_compare){.settings = {.n_resamples = r->n_resamples, .seed = r->seed}};
    for (size_t side = 0; side < 2; side++) {
        c->sides[side].document = *doc_of(runs[side]->from); /* stays its owner's */
        snprintf(numbers[side], sizeof numbers[side], "%zu", runs[side]->from.index + 1);
        if (doc_of(runs[side]->from)->kind == DOC_KLD)
            c->settings.candidates[side] = numbers[side];
    }
    enum status status = doc_compare_make(c, why);
    c->settings.candidates[0] = c->settings.candidates[1] = NULL; /* they end here */
    return status;
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
static void put_figure(struct doc_table *t, const struct doc_compare *c, const char *key)
{
    const struct doc_figure *f;
    const struct doc_pair_figure *v = figure_of(c, key, &f);
    bool differs = v->low > 0 || v->high < 0;
    doc_table_cell(t, "", f->scale * v->difference);
    doc_html(t->file, differs ? "<strong>" : "");
    doc_html(t->file, "%.4g", f->scale * v->difference);
    doc_html(t->file, differs ? "</strong>" : "");
    doc_html(t->file, " <span class=\"error\">[%.4g, %.4g]</span>", f->scale * v->low,
             f->scale * v->high);
    doc_table_cell_end(t);
}

static void put_tasks(struct doc_table *t, const struct doc_compare *c)
{
    const struct doc_pair_counts *counts = &c->counts[0];
    const struct doc_mcnemar *test = &c->tests[0];
    doc_table_words(t, c->task_kind);
    doc_table_number(t, (double)c->n_tasks, 0);
    doc_table_number(t, (double)counts->only_a, 0);
    doc_table_number(t, (double)counts->only_b, 0);
    doc_table_cell(t, "", 100 * test->difference);
    doc_html(t->file, "%.3f <span class=\"error\">± %.3f</span>", 100 * test->difference,
             100 * test->error);
    doc_table_cell_end(t);
    doc_table_cell(t, "", test->exact_p);
    doc_html(t->file, "%.3g", test->exact_p);
    doc_table_cell_end(t);
}

static void put_pair(struct doc_report *r, struct doc_table *t, const struct doc_scoreboard_run *a,
                     const struct doc_scoreboard_run *b, const char *const *figures)
{
    struct doc_compare *c = malloc(sizeof *c);
    struct status_why why = {""};
    size_t n_columns = 0;
    r->no_memory |= c == NULL;
    if (!c)
        return;
    enum status status = doc_report_compare(c, r, a, b, &why);
    while (t->heads[n_columns])
        n_columns++;
    doc_table_row(t, "", a->label);
    doc_table_words(t, b->label);
    if (status)
        doc_html(r->file, "<td colspan=\"%zu\">not compared: <bdi>%s</bdi></td>", n_columns - 2,
                 why.text);
    else if (!figures)
        put_tasks(t, c);
    for (size_t i = 0; !status && figures && figures[i]; i++)
        put_figure(t, c, figures[i]);
    doc_table_row_end(t);
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
    struct doc_table t = {.file = r->file, .heads = heads};
    bool any = false;
    for (size_t i = 0; i < board->n; i++) {
        const struct doc_scoreboard_run *b =
            doc_of(board->runs[i].from)->kind == kind ? neighbour(board, i) : NULL;
        if (!b)
            continue;
        if (!any)
            doc_table_begin(&t, "pairs",
                            kind == DOC_KLD          ? "Divergences"
                            : kind == DOC_PERPLEXITY ? "Perplexities"
                                                     : "Choice tasks",
                            figures ? 2 : 3);
        any = true;
        put_pair(r, &t, &board->runs[i], b, figures);
    }
    if (any)
        doc_table_end(&t);
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
