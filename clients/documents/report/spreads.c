/* Distributions of KLD and Δp over tokens, a row for each model, from its quantiles. */
#include <math.h>

#include "clients/documents/report/html.h"
#include "clients/documents/report/plot.h"
#include "clients/documents/report/report.h"

enum { ROW = 26, FRAME = 60 };

/* What is drawn of a distribution: the quantiles' names below `object`. */
struct spread {
    const char *object, *title, *x_label;
    double scale;
    int n_decimals;
    enum doc_scale axis;
};
static const struct spread spreads[] = {
    {"kld", "KL divergence of tokens", "KLD, nats", 1, 6, DOC_LOG},
    {"dp", "Δp of tokens", "Δp, %", 100, 3, DOC_SIGNED_LOG},
};

enum { MIN, LOW, Q1, MEDIAN, Q3, HIGH, MAX, N_QUANTILES };
static const char *const quantiles[N_QUANTILES] = {"min", "p0_1",  "p25", "median",
                                                   "p75", "p99_9", "max"};
static const double least_kld = 1e-10; /* below this a distribution is rounding */

static void read(double values[N_QUANTILES], const struct spread *s,
                 const struct doc_scoreboard_run *run)
{
    struct base_field object = base_field_need(run->from, s->object);
    for (size_t i = 0; i < N_QUANTILES; i++)
        values[i] = s->scale * base_field_real_or_null(object, quantiles[i]);
}

static void circle(const struct doc_plot *p, double value, double y)
{
    if (isfinite(value))
        doc_html(p->file, "<circle class=\"dot\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>",
                 doc_axis_at(&p->x, value), y);
}

static void draw_row(const struct doc_plot *p, const struct doc_scoreboard_run *run,
                     const double v[N_QUANTILES], double y)
{
    double at[N_QUANTILES];
    char name[DOC_RUN_NAME], classes[DOC_MARK];
    for (size_t i = 0; i < N_QUANTILES; i++)
        at[i] = doc_axis_at(&p->x, v[i]);
    doc_html(p->file,
             "<g class=\"%s\"><text class=\"name\" x=\"%.1f\" y=\"%.1f\" "
             "text-anchor=\"end\">%s</text>",
             doc_mark_classes(classes, run->number), p->x.from - 8, y + 4, doc_run_name(name, run));
    doc_html(
        p->file,
        "<path class=\"bar\" d=\"M%.1f %.1fH%.1f\"/><rect class=\"box\" x=\"%.1f\" "
        "y=\"%.1f\" width=\"%.1f\" height=\"12\"/><path class=\"median\" d=\"M%.1f %.1fv12\"/>",
        at[LOW], y, at[HIGH], fmin(at[Q1], at[Q3]), y - 6, fabs(at[Q3] - at[Q1]), at[MEDIAN],
        y - 6);
    if (p->x.scale == DOC_SIGNED_LOG)
        circle(p, v[MIN], y);
    circle(p, v[MAX], y);
    doc_html(p->file, "</g>\n");
}

static void fit(struct doc_axis *x, const struct spread *s, const struct doc_scoreboard *board)
{
    double low = HUGE_VAL, high = -HUGE_VAL, v[N_QUANTILES];
    for (size_t i = 0; i < board->n; i++) {
        if (!doc_run_diverges(&board->runs[i]))
            continue;
        read(v, s, &board->runs[i]);
        for (size_t k = s->axis == DOC_LOG ? LOW : MIN; k < N_QUANTILES; k++)
            if (doc_axis_has(x, v[k])) {
                low = fmin(low, v[k]);
                high = fmax(high, v[k]);
            }
    }
    if (s->axis == DOC_LOG) {
        doc_axis_fit(x, fmax(low, least_kld), fmax(high, 10 * least_kld));
    } else {
        x->low = fmax(fmin(low, -0.1), -100) * 1.05;
        x->high = fmin(fmax(high, 0.1), 100) * 1.05;
    }
}

static void draw(struct base_file *file, const struct spread *s, const struct doc_scoreboard *board,
                 enum doc_form form)
{
    size_t n_rows = 0;
    for (size_t i = 0; i < board->n; i++)
        n_rows += doc_run_diverges(&board->runs[i]);
    struct doc_plot p = {.file = file,
                         .form = form,
                         .title = s->title,
                         .x_label = s->x_label,
                         .height = FRAME + (double)n_rows * ROW,
                         .left = doc_names_width(board) + 16,
                         .right = 24,
                         .x.scale = s->axis};
    fit(&p.x, s, board);
    doc_plot_begin(&p);
    double y = p.y.to + (double)ROW / 2, v[N_QUANTILES];
    for (size_t i = 0; i < board->n; i++) {
        if (!doc_run_diverges(&board->runs[i]))
            continue;
        read(v, s, &board->runs[i]);
        draw_row(&p, &board->runs[i], v, y);
        y += ROW;
    }
    doc_plot_end(&p);
}

static void tabulate(struct base_file *file, const struct spread *s,
                     const struct doc_scoreboard *board)
{
    static const char *const heads[] = {"model",  "quantisation", "minimum", "0.1 %",   "25 %",
                                        "median", "75 %",         "99.9 %",  "maximum", NULL};
    double v[N_QUANTILES];
    struct doc_table t = {.file = file, .heads = heads};
    doc_table_begin_folded(&t, s->title, s->x_label);
    for (size_t i = 0; i < board->n; i++) {
        const struct doc_scoreboard_run *run = &board->runs[i];
        if (!doc_run_diverges(run))
            continue;
        read(v, s, run);
        doc_table_row(&t, "", run->label);
        doc_table_words(&t, run->quantisation);
        for (size_t k = 0; k < N_QUANTILES; k++)
            doc_table_number(&t, v[k], s->n_decimals);
        doc_table_row_end(&t);
    }
    doc_table_end_folded(&t);
}

void doc_report_spreads(struct doc_report *r)
{
    const struct doc_scoreboard *board = &r->results->of_texts;
    bool any = false;
    for (size_t i = 0; i < board->n; i++)
        any |= doc_run_diverges(&board->runs[i]);
    if (!any) {
        doc_report_missing(r, "No distributions: none of the results is of assay kld.");
        return;
    }
    doc_html(r->file, "<div class=\"pair\">\n");
    for (size_t k = 0; k < sizeof spreads / sizeof *spreads; k++) {
        doc_html(r->file, "<figure>");
        for (int form = 0; form < DOC_N_PAGE_FORMS; form++)
            draw(r->file, &spreads[k], board, (enum doc_form)form);
        doc_html(r->file, "<figcaption>%s, with a %s scale.</figcaption></figure>\n",
                 spreads[k].title,
                 spreads[k].axis == DOC_LOG ? "logarithmic" : "signed logarithmic");
    }
    doc_html(r->file, "</div>\n");
    for (size_t k = 0; k < sizeof spreads / sizeof *spreads; k++)
        tabulate(r->file, &spreads[k], board);
}
