/* Divergence and perplexity against size, one chart for each set of inputs. */
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "documents/report/html.h"
#include "documents/report/plot.h"
#include "documents/report/report.h"

/* A chart of one metric over the runs that are comparable with `head`. */
struct chart {
    struct doc_plot plot;
    const struct doc_scoreboard *board;
    const struct doc_scoreboard_run *head;
    size_t metric;
    double unit;     /* bytes of one step of the x axis */
    unsigned *flags; /* of each run: IN_CHART, ... */
};
enum { IN_CHART = 1, DRAWN = 2, FRONT = 4 };

/* Whether two runs saw the same tokens; their divergences also need the same base. */
static bool comparable(const struct doc_scoreboard_run *a, const struct doc_scoreboard_run *b,
                       size_t metric)
{
    struct doc_field x = doc_root(a->from.document);
    struct doc_field y = doc_root(b->from.document);
    if (x.document == y.document)
        return true;
    if (doc_fields_equal(&x, &y, "tokens.sha256 windows.n_tokens result.n_windows", NULL, NULL))
        return false;
    if (metric != DOC_METRIC_KLD)
        return true;
    struct doc_field base_x = doc_base_id(&x), base_y = doc_base_id(&y);
    return !doc_values_equal(&base_x, &base_y, NULL);
}

static bool has_metric(const struct doc_scoreboard_run *run, size_t metric)
{
    return run->values[metric].known;
}

static bool is_drawn(const struct chart *c, size_t run)
{
    return c->flags[run] & DRAWN;
}

static double value_of(const struct chart *c, const struct doc_scoreboard_run *run)
{
    return run->values[c->metric].value;
}

/* Nothing that is drawn is as small and better, or smaller and as good. */
static bool on_front(const struct chart *c, const struct doc_scoreboard_run *run)
{
    for (size_t i = 0; i < c->board->n; i++) {
        const struct doc_scoreboard_run *other = &c->board->runs[i];
        bool as_good = other->n_bytes <= run->n_bytes && value_of(c, other) <= value_of(c, run);
        bool better = other->n_bytes < run->n_bytes || value_of(c, other) < value_of(c, run);
        if (is_drawn(c, i) && as_good && better)
            return false;
    }
    return true;
}

static enum status choose(struct chart *c, struct status_why *why)
{
    if (base_array_new(c->flags, c->board->n, "runs of a chart", why))
        return STATUS_MEMORY;
    for (size_t i = 0; i < c->board->n; i++) {
        const struct doc_scoreboard_run *run = &c->board->runs[i];
        if (!has_metric(run, c->metric) || !comparable(c->head, run, c->metric))
            continue;
        bool has_place = doc_axis_has(&c->plot.y, value_of(c, run)) && isfinite(run->n_bytes) &&
                         run->n_bytes > 0;
        c->flags[i] = has_place ? IN_CHART | DRAWN : IN_CHART;
    }
    for (size_t i = 0; i < c->board->n; i++)
        if (is_drawn(c, i) && on_front(c, &c->board->runs[i]))
            c->flags[i] |= FRONT;
    return STATUS_OK;
}

/* Place the axes around what is drawn; returns how many runs that are. */
static size_t fit(struct chart *c)
{
    double low_x = HUGE_VAL, high_x = 0, low_y = HUGE_VAL, high_y = -HUGE_VAL;
    size_t n = 0;
    for (size_t i = 0; i < c->board->n; i++) {
        const struct doc_scoreboard_run *run = &c->board->runs[i];
        if (!is_drawn(c, i))
            continue;
        double v = value_of(c, run), error = run->values[c->metric].error;
        double low = doc_axis_has(&c->plot.y, v - error) ? v - error : v;
        low_x = fmin(low_x, run->n_bytes);
        high_x = fmax(high_x, run->n_bytes);
        low_y = fmin(low_y, low);
        high_y = fmax(high_y, isfinite(error) ? v + error : v);
        n++;
    }
    bool large = high_x >= 0x1p29;
    c->unit = large ? 0x1p30 : 0x1p20;
    c->plot.x_label = large ? "size in GiB" : "size in MiB";
    doc_axis_fit(&c->plot.x, low_x / c->unit, high_x / c->unit);
    doc_axis_fit(&c->plot.y, low_y, high_y);
    return n;
}

static double x_of(const struct chart *c, const struct doc_scoreboard_run *run)
{
    return doc_axis_at(&c->plot.x, run->n_bytes / c->unit);
}

static double y_of(const struct chart *c, double value)
{
    return doc_axis_at(&c->plot.y, value);
}

/* The next larger run on the front after one, or the smallest where that is NULL. */
static const struct doc_scoreboard_run *next_on_front(const struct chart *c,
                                                      const struct doc_scoreboard_run *smaller)
{
    const struct doc_scoreboard_run *next = NULL;
    for (size_t i = 0; i < c->board->n; i++) {
        const struct doc_scoreboard_run *run = &c->board->runs[i];
        if (c->flags[i] & FRONT && (!smaller || run->n_bytes > smaller->n_bytes) &&
            (!next || run->n_bytes < next->n_bytes))
            next = run;
    }
    return next;
}

/* A step: up to the next larger model, the smaller one is the best there is. */
static void draw_front(const struct chart *c)
{
    struct base_file *file = c->plot.file;
    const struct doc_scoreboard_run *run = next_on_front(c, NULL);
    doc_html(file, "<path class=\"front\" d=\"M%.1f %.1f", x_of(c, run), y_of(c, value_of(c, run)));
    while ((run = next_on_front(c, run)))
        doc_html(file, "H%.1fV%.1f", x_of(c, run), y_of(c, value_of(c, run)));
    doc_html(file, "\"/>\n");
}

static void draw_runs(const struct chart *c)
{
    struct doc_labels labels = {.n = 0};
    struct base_label name;
    for (size_t i = 0; i < c->board->n; i++) {
        const struct doc_scoreboard_run *run = &c->board->runs[i];
        if (!is_drawn(c, i))
            continue;
        double x = x_of(c, run), v = value_of(c, run), error = run->values[c->metric].error;
        if (isfinite(error))
            doc_html(c->plot.file, "<path class=\"bar\" d=\"M%.1f %.1fV%.1f\"/>", x,
                     y_of(c, doc_axis_has(&c->plot.y, v - error) ? v - error : c->plot.y.low),
                     y_of(c, v + error));
        doc_html(c->plot.file,
                 "<circle class=\"dot%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"4.5\"><title>%s: %.6g ± "
                 "%.2g, %.4g MiB</title></circle>\n",
                 c->flags[i] & FRONT ? " best" : "", x, y_of(c, v), run->file, v, error,
                 run->n_bytes / 0x1p20);
        doc_labels_keep(&labels, x, y_of(c, v));
    }
    for (size_t i = 0; i < c->board->n; i++) {
        const struct doc_scoreboard_run *run = &c->board->runs[i];
        if (is_drawn(c, i))
            doc_labels_put(&labels, &c->plot, x_of(c, run), y_of(c, value_of(c, run)),
                           doc_run_name(&name, run));
    }
}

static struct chart make_chart(struct base_file *file, const struct doc_scoreboard *board,
                               const struct doc_scoreboard_run *head, size_t metric)
{
    bool kld = metric == DOC_METRIC_KLD;
    return (struct chart){
        .plot = {.file = file,
                 .title = kld ? "Mean KL divergence against size" : "Perplexity against size",
                 .y_label = kld ? "mean KLD, nats" : "perplexity",
                 .height = 380,
                 .left = 76,
                 .right = 60,
                 .y.scale = kld ? DOC_LOG : DOC_LINEAR},
        .board = board,
        .head = head,
        .metric = metric,
    };
}

static void draw(struct chart *c)
{
    doc_plot_begin(&c->plot);
    draw_front(c);
    draw_runs(c);
    doc_plot_end(&c->plot);
}

static void caption(struct chart *c, size_t n_drawn)
{
    struct base_file *file = c->plot.file;
    struct doc_field root = doc_root(c->head->from.document);
    doc_html(file, "<figcaption>%s; %zu model%s, %.15g tokens of %.15g windows.", c->plot.title,
             n_drawn, status_plural(n_drawn), (double)doc_field_count(&root, "result.n_tokens"),
             (double)doc_field_count(&root, "result.n_windows"));
    const char *separator = " Not drawn: ";
    for (size_t i = 0; i < c->board->n; i++) {
        const struct doc_scoreboard_run *run = &c->board->runs[i];
        if (c->flags[i] != IN_CHART)
            continue;
        doc_html(file, "%s<bdi>%s</bdi> (%.6g)", separator, run->label, value_of(c, run));
        separator = ", ";
    }
    doc_html(file, "</figcaption>\n");
}

/* Whether a run is the first of those that it is comparable with. */
static bool is_head(const struct doc_scoreboard *board, size_t run, size_t metric)
{
    bool first = has_metric(&board->runs[run], metric);
    for (size_t i = 0; i < run && first; i++)
        first = !has_metric(&board->runs[i], metric) ||
                !comparable(&board->runs[i], &board->runs[run], metric);
    return first;
}

/* A chart for each set of comparable runs. Returns whether there is one. */
static bool draw_all(struct doc_report *r, size_t metric)
{
    const struct doc_scoreboard *board = &r->results->of_texts;
    bool any = false;
    for (size_t i = 0; i < board->n; i++) {
        if (!is_head(board, i, metric))
            continue;
        any = true;
        struct chart c = make_chart(r->file, board, &board->runs[i], metric);
        r->no_memory |= choose(&c, NULL);
        size_t n_drawn = c.flags ? fit(&c) : 0;
        doc_html(r->file, "<figure>");
        if (n_drawn) {
            doc_html(r->file,
                     "<div class=\"wide\" role=\"region\" aria-label=\"%s\" "
                     "tabindex=\"0\">\n",
                     c.plot.title);
            draw(&c);
            doc_html(r->file, "</div>");
        }
        if (c.flags)
            caption(&c, n_drawn);
        doc_html(r->file, "</figure>\n");
        free(c.flags);
    }
    return any;
}

void doc_report_sizes(struct doc_report *r)
{
    if (!draw_all(r, DOC_METRIC_KLD))
        doc_report_missing(r, "No divergence: none of the results is of assay kld.");
    if (!draw_all(r, DOC_METRIC_PPL))
        doc_report_missing(r, "No perplexity: none of the results is of a text.");
}

enum status doc_report_size_svg(struct base_file *file, const struct doc_scoreboard *board,
                                struct status_why *why)
{
    static const size_t metrics[] = {DOC_METRIC_KLD, DOC_METRIC_PPL};
    for (size_t m = 0; m < 2; m++)
        for (size_t i = 0; i < board->n; i++) {
            if (!has_metric(&board->runs[i], metrics[m]))
                continue;
            struct chart c = make_chart(file, board, &board->runs[i], metrics[m]);
            c.plot.stands_alone = true;
            enum status status = choose(&c, why);
            size_t n_drawn = status ? 0 : fit(&c);
            if (n_drawn)
                draw(&c);
            free(c.flags);
            if (status)
                return status;
            if (n_drawn)
                return doc_status(board->runs[i].from.document, why);
        }
    return status_fail(why, STATUS_USAGE,
                       "none of the results has a divergence or a perplexity that can be drawn");
}
