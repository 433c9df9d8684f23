/* Distributions of KLD and Δp over tokens, a row for each model, from its quantiles. */
#include <math.h>

#include "documents/report/html.h"
#include "documents/report/plot.h"
#include "documents/report/report.h"

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
    struct doc_field object = doc_field_at(&run->from, s->object);
    for (size_t i = 0; i < N_QUANTILES; i++)
        values[i] = s->scale * doc_field_real(&object, quantiles[i]);
}

static void circle(const struct doc_plot *p, double value, double y)
{
    if (isfinite(value))
        doc_html(p->file, "<circle class=\"dot\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>",
                 doc_axis_at(&p->x, value), y);
}

static void draw_row(const struct doc_plot *p, const char *name, const double v[N_QUANTILES],
                     double y)
{
    double at[N_QUANTILES];
    for (size_t i = 0; i < N_QUANTILES; i++)
        at[i] = doc_axis_at(&p->x, v[i]);
    doc_html(p->file, "<text class=\"name\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%s</text>",
             p->x.from - 8, y + 4, name);
    doc_html(
        p->file,
        "<path class=\"bar\" d=\"M%.1f %.1fH%.1f\"/><rect class=\"box\" x=\"%.1f\" "
        "y=\"%.1f\" width=\"%.1f\" height=\"12\"/><path class=\"median\" d=\"M%.1f %.1fv12\"/>",
        at[LOW], y, at[HIGH], fmin(at[Q1], at[Q3]), y - 6, fabs(at[Q3] - at[Q1]), at[MEDIAN],
        y - 6);
    if (p->x.scale == DOC_SIGNED_LOG)
        circle(p, v[MIN], y);
    circle(p, v[MAX], y);
    doc_html(p->file, "\n");
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
                 size_t n_rows)
{
    struct doc_plot p = {.file = file,
                         .title = s->title,
                         .x_label = s->x_label,
                         .height = FRAME + (double)n_rows * ROW,
                         .left = 170,
                         .right = 24,
                         .x.scale = s->axis};
    fit(&p.x, s, board);
    doc_report_figure(file, s->title);
    doc_plot_begin(&p);
    double y = p.y.to + (double)ROW / 2, v[N_QUANTILES];
    for (size_t i = 0; i < board->n; i++) {
        struct base_label name;
        if (!doc_run_diverges(&board->runs[i]))
            continue;
        read(v, s, &board->runs[i]);
        draw_row(&p, doc_run_name(&name, &board->runs[i]), v, y);
        y += ROW;
    }
    doc_plot_end(&p);
    doc_html(file, "</div><figcaption>%s, with a %s scale.</figcaption></figure>\n", s->title,
             s->axis == DOC_LOG ? "logarithmic" : "signed logarithmic");
}

static void tabulate(struct base_file *file, const struct spread *s,
                     const struct doc_scoreboard *board)
{
    static const char *const heads[] = {"model",  "quantisation", "minimum", "0.1 %",   "25 %",
                                        "median", "75 %",         "99.9 %",  "maximum", NULL};
    double v[N_QUANTILES];
    doc_report_numbers(file, s->title, s->x_label, heads);
    for (size_t i = 0; i < board->n; i++) {
        const struct doc_scoreboard_run *run = &board->runs[i];
        if (!doc_run_diverges(run))
            continue;
        read(v, s, run);
        doc_report_row(file, run->label, run->quantisation);
        for (size_t k = 0; k < N_QUANTILES; k++)
            doc_report_number(file, v[k], s->n_decimals);
        doc_html(file, "</tr>\n");
    }
    doc_report_numbers_end(file);
}

void doc_report_spreads(struct doc_report *r)
{
    const struct doc_scoreboard *board = &r->results->of_texts;
    size_t n_rows = 0;
    for (size_t i = 0; i < board->n; i++)
        n_rows += doc_run_diverges(&board->runs[i]);
    if (!n_rows)
        doc_report_missing(r, "No distributions: none of the results is of assay kld.");
    for (size_t k = 0; n_rows && k < sizeof spreads / sizeof *spreads; k++) {
        draw(r->file, &spreads[k], board, n_rows);
        tabulate(r->file, &spreads[k], board);
    }
}
