/* The head of the page: for each text, or kind of tasks, a sentence and the figures it rests on. */
#include <math.h>
#include <stdint.h>

#include "base/text/number.h"
#include "clients/documents/report/html.h"
#include "clients/documents/report/words/ranking.h"
#include "clients/documents/results/drawn.h"
#include "clients/documents/results/texts.h"

enum { FEW_WINDOWS = 20, MOST_ROWS = 10, MOST_NAMED = 6 };

static const char *base_of(const struct doc_ranking *f)
{
    const struct doc_scoreboard *board = f->board;
    for (size_t i = 0; i < board->n && f->metric == DOC_METRIC_KLD; i++)
        if (board->runs[i].is_base &&
            doc_runs_comparable(&board->runs[i], f->runs[0], DOC_METRIC_KLD))
            return board->runs[i].label;
    return "the base";
}

/* "X is nearest to Y", with the figure that says so. */
static void put_best(const struct doc_ranking *f)
{
    struct base_file *file = f->report->file;
    const struct doc_scoreboard_run *best = f->runs[0];
    const struct doc_metric_value *v = &best->values[f->metric];
    char figure[BASE_FIGURE_BYTES];
    doc_html(file, "<strong><bdi>%s</bdi> ", best->label);
    base_figure_with_error(figure, v->value, v->error);
    if (f->board->of_tasks) {
        doc_html(file, "is right most often</strong>, in %.2f %% of the tasks.", -f->values[0]);
    } else if (f->metric == DOC_METRIC_KLD) {
        doc_html(file, "is nearest to <bdi>%s</bdi></strong>: ", base_of(f));
        doc_html(file,
                 "its mean KLD is %s nats, and after %.2f %% of the tokens both have the same "
                 "most likely next one.",
                 figure, 100 * base_field_real_or_null(best->from, "same_top"));
    } else {
        doc_html(file, "has the lowest perplexity</strong>: %s.", figure);
    }
    if (doc_ranking_count(f, DOC_EQUAL)) {
        doc_html(file, " Within chance, ");
        doc_put_found(f, DOC_EQUAL);
        doc_html(file, " %s as good.", doc_ranking_count(f, DOC_EQUAL) > 1 ? "are" : "is");
    }
}

/* Which sizes gain nothing: another model is no larger and better. */
static void put_gains(const struct doc_ranking *f)
{
    struct base_file *file = f->report->file;
    size_t n = 0, put = 0;
    for (size_t i = 1; i < f->n; i++)
        n += doc_ranking_instead_of(f, i) != NULL;
    bool all_told = !doc_ranking_count(f, DOC_EQUAL) && !doc_ranking_count(f, DOC_UNTESTED);
    if (!n)
        doc_html(file, f->n > 1 && all_told
                           ? " Each size gains something: every larger model is better."
                           : "");
    size_t n_named = n <= MOST_NAMED + 1 ? n : MOST_NAMED;
    for (size_t i = 1; i < f->n && put < n_named; i++)
        if (doc_ranking_instead_of(f, i)) {
            doc_html(file, "%s<bdi>%s</bdi>",
                     !put           ? " "
                     : put + 1 == n ? " and "
                                    : ", ",
                     f->runs[i]->label);
            put++;
        }
    if (n > n_named)
        doc_html(file, " and %zu more", n - n_named);
    if (n)
        doc_html(file, " gain%s nothing: another one is no larger and better.", n == 1 ? "s" : "");
}

static void put_row(const struct doc_ranking *f, struct doc_table *t, size_t i)
{
    const struct doc_scoreboard_run *run = f->runs[i];
    size_t n;
    const struct doc_metric *metrics = doc_scoreboard_metrics(&n, f->board);
    char classes[DOC_MARK + 4] = "key ";
    doc_mark_classes(classes + 4, run->number);
    doc_table_row(t, classes, run->label);
    double kld = run->values[DOC_METRIC_KLD].value;
    if (f->metric == DOC_METRIC_KLD)
        doc_table_words(t, isfinite(kld) ? doc_drawn_otherwise(kld, doc_run_rounding(run)) : "-");
    doc_table_short(t, run->n_bytes / f->report->unit.bytes);
    if (f->board->of_tasks) {
        doc_table_figure(t, -f->values[i],
                         100 * base_field_real_or_null(run->from, "result.score.error"));
    } else {
        doc_table_value(t, &metrics[f->metric], &run->values[f->metric]);
        if (f->metric == DOC_METRIC_KLD) {
            double ln = base_field_real_or_null(run->from, "ppl.ln_ratio");
            double error = doc_error(run->from, "ppl.ln_ratio_error");
            doc_table_figure(t, 100 * base_field_real_or_null(run->from, "same_top"),
                             100 * doc_error(run->from, "same_top_error"));
            doc_table_figure(t, 100 * expm1(ln), 100 * exp(ln) * error);
        }
    }
    doc_table_row_end(t);
}

/* The figures of those that are the best of their size; of tasks, of all. */
static void put_figures(const struct doc_ranking *f)
{
    bool gib = f->report->unit.bytes > 0x1p20, diverges = f->metric == DOC_METRIC_KLD;
    const char *all[] = {"model",
                         "tokens drawn otherwise",
                         gib ? "size GiB" : "size MiB",
                         f->board->of_tasks ? "right %"
                         : diverges         ? "KLD"
                                            : "PPL",
                         diverges ? "same top p %" : NULL,
                         "ΔPPL %",
                         NULL};
    const char **heads = diverges ? all : all + 1;
    heads[0] = all[0];
    struct doc_table t = {.file = f->report->file, .heads = heads};
    size_t n_rows = 0;
    doc_table_begin(&t, "answers", f->board->of_tasks ? "Best first" : "The best of each size",
                    1 + diverges);
    for (size_t i = 0; i < f->n && n_rows < MOST_ROWS; i++)
        if (f->board->of_tasks || !doc_ranking_instead_of(f, i)) {
            put_row(f, &t, i);
            n_rows++;
        }
    doc_table_end(&t);
}

/* Intervals from few windows are too narrow. */
static void put_few(const struct doc_ranking *f)
{
    struct base_field root = doc_root(doc_of(f->runs[0]->from));
    size_t n = doc_count(root, "result.n_windows");
    for (size_t i = 0; i < f->n; i++)
        if (f->runs[i]->n_windows && f->runs[i]->n_windows < n)
            n = f->runs[i]->n_windows;
    if (f->n > 1 && n < FEW_WINDOWS)
        doc_html(f->report->file,
                 "<p class=\"note\">There are only %zu windows: the tests may take chance for a "
                 "difference.</p>\n",
                 n);
}

/* The answer of a race, then a sentence for each other file. */
static void put_race(const struct doc_ranking *f, struct base_field verdict, bool alone)
{
    struct base_file *file = f->report->file;
    struct base_field sentence = {0};
    base_field_next(verdict, &sentence);
    doc_html(file, "<p class=\"answer\"><strong><bdi>%s</bdi></strong></p>\n",
             base_field_text(sentence, ""));
    if (alone) {
        put_few(f);
        put_figures(f);
    }
    if (base_field_count(verdict) < 2)
        return;
    doc_html(file, "<details><summary>What the race says of the others</summary>\n"
                   "<ul class=\"verdict\">\n");
    while (base_field_next(verdict, &sentence))
        doc_html(file, "<li><bdi>%s</bdi></li>\n", base_field_text(sentence, ""));
    doc_html(file, "</ul>\n</details>\n");
}

/* The documents of the divergences that are ranked here, each once; NULL after the last. */
static struct doc_document *next_ranked(const struct doc_ranking *f, struct doc_document *last)
{
    struct doc_results *results = f->report->results;
    for (size_t d = last ? (size_t)(last - results->documents) + 1 : 0; d < results->n; d++)
        for (size_t i = 0; i < f->board->n; i++) {
            const struct doc_scoreboard_run *run = &f->board->runs[i];
            if (doc_run_is_of(run, &results->documents[d]) && !run->is_base &&
                run->values[DOC_METRIC_KLD].known &&
                doc_runs_comparable(f->runs[0], run, DOC_METRIC_KLD))
                return &results->documents[d];
        }
    return NULL;
}

/* The answers of the races among them. True: there is one race and nothing else. */
static bool put_races(const struct doc_ranking *f)
{
    if (f->metric != DOC_METRIC_KLD)
        return false;
    struct doc_document *first = next_ranked(f, NULL);
    bool alone = !next_ranked(f, first), any = false;
    for (struct doc_document *d = first; d; d = next_ranked(f, d)) {
        struct base_field verdict = base_field_list_or_none(doc_root(d), "verdict");
        if (!base_field_count(verdict))
            continue;
        put_race(f, verdict, alone);
        any = true;
    }
    return alone && any;
}

/* The text, and how many of its windows were evaluated: what tells one ranking from another. */
static void put_heading(const struct doc_ranking *f, const char *name)
{
    struct base_file *file = f->report->file;
    doc_html(file, "<h3><bdi>%s</bdi>", name);
    if (!f->board->of_tasks)
        doc_html(file, ", %zu windows",
                 doc_count(doc_root(doc_of(f->runs[0]->from)), "result.n_windows"));
    doc_html(file, "</h3>\n");
}

static void put_ranking(const struct doc_ranking *f, const char *name)
{
    struct base_file *file = f->report->file;
    if (f->report->results->n > 1)
        put_heading(f, name);
    if (put_races(f))
        return;
    doc_html(file, "<p class=\"answer\">");
    put_best(f);
    if (!f->board->of_tasks)
        put_gains(f);
    doc_html(file, "</p>\n");
    if (!f->board->of_tasks)
        put_few(f);
    put_figures(f);
    if (f->n > 1 || f->metric == DOC_METRIC_KLD) {
        doc_html(file, "<details><summary>What the tests say</summary>\n");
        doc_put_verdict(f, base_of(f));
        doc_html(file, "</details>\n");
    }
}

static void put_texts(struct doc_report *r, size_t metric)
{
    const struct doc_scoreboard *board = &r->results->of_texts;
    char text[DOC_TEXT_NAME];
    for (size_t i = 0; i < board->n && !r->no_memory; i++) {
        struct doc_ranking f = {.report = r, .board = board};
        if (doc_run_is_head(board, i, metric) && doc_rank_texts(&f, &board->runs[i], metric))
            put_ranking(&f, doc_text_name(text, doc_of(f.runs[0]->from)));
    }
}

static void put_tasks(struct doc_report *r)
{
    const struct doc_scoreboard *board = &r->results->of_tasks;
    for (size_t i = 0, n; i < board->n; i += n) {
        struct doc_ranking f = {.report = r, .board = board};
        n = doc_rank_tasks(&f, i);
        if (f.n)
            put_ranking(&f, board->runs[i].task);
    }
}

void doc_report_answer(struct doc_report *r)
{
    if (!r->results->of_texts.n && !r->results->of_tasks.n)
        return;
    put_texts(r, DOC_METRIC_KLD);
    put_texts(r, DOC_METRIC_PPL);
    put_tasks(r);
}
