/* Divergence and perplexity against size, divergence against speed: one chart for each set of
 * inputs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "clients/documents/report/html.h"
#include "clients/documents/report/plot.h"
#include "clients/documents/report/report.h"
#include "clients/documents/results/cache.h"

/* A chart of one metric over the runs that are comparable with `head`. */
struct chart {
    struct doc_plot plot;
    const struct doc_scoreboard *board;
    const struct doc_scoreboard_run *head;
    size_t metric;
    double n_context; /* tokens of a cache that counts as size; 0: weights alone */
    bool by_speed;    /* of generation, in place of size */
    struct doc_unit unit;
    char x_label[80];
    double rounding; /* of the mean divergences that are drawn, the largest; NaN: not known */
    unsigned *flags; /* of each run: IN_CHART, ... */
};
enum { IN_CHART = 1, DRAWN = 2, FRONT = 4 };

static bool has_metric(const struct doc_scoreboard_run *run, size_t metric)
{
    return run->values[metric].known;
}

static bool is_drawn(const struct chart *c, size_t run)
{
    return c->flags[run] & DRAWN;
}

static const struct doc_metric_value *speed_of(const struct doc_scoreboard_run *run)
{
    return &run->values[doc_speed_metric(DOC_GENERATION)];
}

/* Bytes, or tokens per second; NaN where a speed, or a cache that is asked for, is not known. */
static double size_of(const struct chart *c, const struct doc_scoreboard_run *run)
{
    if (c->by_speed)
        return speed_of(run)->known ? speed_of(run)->value : (double)NAN;
    return run->n_bytes + (c->n_context > 0 ? doc_cache_bytes(run->model, c->n_context) : 0);
}

static double value_of(const struct chart *c, const struct doc_scoreboard_run *run)
{
    return run->values[c->metric].value;
}

/* The less the better. */
static double cost_of(const struct chart *c, const struct doc_scoreboard_run *run)
{
    return c->by_speed ? -size_of(c, run) : size_of(c, run);
}

/* No other model that is drawn costs at most as much and is better, or costs less and is as good.
 */
static bool on_front(const struct chart *c, const struct doc_scoreboard_run *run)
{
    for (size_t i = 0; i < c->board->n; i++) {
        const struct doc_scoreboard_run *other = &c->board->runs[i];
        bool as_good =
            cost_of(c, other) <= cost_of(c, run) && value_of(c, other) <= value_of(c, run);
        bool better = cost_of(c, other) < cost_of(c, run) || value_of(c, other) < value_of(c, run);
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
        if (!has_metric(run, c->metric) || !doc_runs_comparable(c->head, run, c->metric))
            continue;
        bool has_place = doc_axis_has(&c->plot.y, value_of(c, run)) && isfinite(size_of(c, run)) &&
                         size_of(c, run) > 0;
        c->flags[i] = has_place ? IN_CHART | DRAWN : IN_CHART;
    }
    for (size_t i = 0; i < c->board->n; i++)
        if (is_drawn(c, i) && on_front(c, &c->board->runs[i]))
            c->flags[i] |= FRONT;
    return STATUS_OK;
}

/* What rounding may have moved a mean divergence by, or NaN. */
static double rounding_of(const struct chart *c, const struct doc_scoreboard_run *run)
{
    return c->metric == DOC_METRIC_KLD ? doc_run_rounding(run) : (double)NAN;
}

/* Whether the chart reaches down to the line of the rounding. */
static bool shows_rounding(const struct chart *c)
{
    return c->rounding > c->plot.y.low && c->rounding < c->plot.y.high;
}

/* Place the axes around what is drawn; returns how many runs that are. */
static size_t fit(struct chart *c)
{
    double low_x = HUGE_VAL, high_x = 0, low_y = HUGE_VAL, high_y = -HUGE_VAL;
    size_t n = 0;
    c->rounding = (double)NAN;
    for (size_t i = 0; i < c->board->n; i++) {
        const struct doc_scoreboard_run *run = &c->board->runs[i];
        if (!is_drawn(c, i))
            continue;
        double v = value_of(c, run), error = run->values[c->metric].error;
        double low = doc_axis_has(&c->plot.y, v - error) ? v - error : v;
        low_x = fmin(low_x, size_of(c, run));
        high_x = fmax(high_x, size_of(c, run));
        low_y = fmin(low_y, low);
        high_y = fmax(high_y, isfinite(error) ? v + error : v);
        c->rounding = fmax(c->rounding, rounding_of(c, run));
        n++;
    }
    if (c->n_context > 0)
        snprintf(c->x_label, sizeof c->x_label, "weights and cache of %.15g tokens, %s",
                 c->n_context, c->unit.name);
    else
        snprintf(c->x_label, sizeof c->x_label, "%s, %s", c->by_speed ? "generation" : "size",
                 c->unit.name);
    doc_axis_fit(&c->plot.x, low_x / c->unit.bytes, high_x / c->unit.bytes);
    bool near = c->rounding > low_y / 100; /* else the line would take more room than the models */
    doc_axis_fit(&c->plot.y, near ? fmin(low_y, c->rounding) : low_y, high_y);
    return n;
}

static double x_of(const struct chart *c, const struct doc_scoreboard_run *run)
{
    return doc_axis_at(&c->plot.x, size_of(c, run) / c->unit.bytes);
}

static double y_of(const struct chart *c, double value)
{
    return doc_axis_at(&c->plot.y, value);
}

/* The next run on the front that costs more than one, or the first where that is NULL. */
static const struct doc_scoreboard_run *next_on_front(const struct chart *c,
                                                      const struct doc_scoreboard_run *cheaper)
{
    const struct doc_scoreboard_run *next = NULL;
    for (size_t i = 0; i < c->board->n; i++) {
        const struct doc_scoreboard_run *run = &c->board->runs[i];
        if (c->flags[i] & FRONT && (!cheaper || cost_of(c, run) > cost_of(c, cheaper)) &&
            (!next || cost_of(c, run) < cost_of(c, next)))
            next = run;
    }
    return next;
}

/* A step: up to the next model, the one that costs less is the best there is. */
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
    char name[DOC_RUN_NAME];
    for (size_t i = 0; i < c->board->n; i++) {
        const struct doc_scoreboard_run *run = &c->board->runs[i];
        if (!is_drawn(c, i))
            continue;
        double x = x_of(c, run), v = value_of(c, run), error = run->values[c->metric].error;
        if (isfinite(error)) {
            double low = y_of(c, doc_axis_has(&c->plot.y, v - error) ? v - error : c->plot.y.low);
            doc_html(c->plot.file, "<path class=\"bar\" d=\"M%.1f %.1fV%.1f\"/>", x, low,
                     y_of(c, v + error));
            doc_labels_keep_bar(&labels, x, y_of(c, v + error), low);
        }
        if (c->by_speed && isfinite(speed_of(run)->error))
            doc_html(c->plot.file, "<path class=\"bar\" d=\"M%.1f %.1fH%.1f\"/>",
                     doc_axis_at(&c->plot.x, speed_of(run)->value - speed_of(run)->error),
                     y_of(c, v),
                     doc_axis_at(&c->plot.x, speed_of(run)->value + speed_of(run)->error));
        doc_plot_mark(&c->plot, x, y_of(c, v), run->number, c->flags[i] & FRONT);
        doc_html(c->plot.file, "%s: %.6g ± %.2g, %.4g %s", run->file, v, error,
                 size_of(c, run) / c->unit.bytes, c->unit.name);
        doc_plot_mark_end(&c->plot);
        doc_labels_keep(&labels, x, y_of(c, v));
    }
    for (size_t i = 0; i < c->board->n; i++) {
        const struct doc_scoreboard_run *run = &c->board->runs[i];
        if (is_drawn(c, i))
            doc_labels_put(&labels, &c->plot, x_of(c, run), y_of(c, value_of(c, run)),
                           doc_run_name(name, run));
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
                 .left = 70,
                 .right = 60,
                 .y.scale = kld ? DOC_LOG : DOC_LINEAR},
        .board = board,
        .head = head,
        .metric = metric,
        .unit = doc_unit_of(board, NULL),
    };
}

static void draw(struct chart *c, enum doc_form form)
{
    c->plot.form = form;
    c->plot.x_label = c->x_label;
    doc_plot_begin(&c->plot);
    if (shows_rounding(c))
        doc_html(c->plot.file,
                 "<path class=\"zero\" d=\"M%.1f %.1fH%.1f\"><title>rounding: %.2g nats</title>"
                 "</path><text class=\"tick\" x=\"%.1f\" y=\"%.1f\">rounding</text>\n",
                 c->plot.x.from, y_of(c, c->rounding), c->plot.x.to, c->rounding,
                 c->plot.x.from + 6, y_of(c, c->rounding) - 5);
    draw_front(c);
    draw_runs(c);
    doc_plot_end(&c->plot);
}

/* What is not drawn, and why. */
static void name_others(const struct chart *c)
{
    struct base_file *file = c->plot.file;
    const char *separator = " Not drawn: ";
    for (size_t i = 0; i < c->board->n; i++) {
        const struct doc_scoreboard_run *run = &c->board->runs[i];
        if (c->flags[i] != IN_CHART)
            continue;
        doc_html(file, "%s<bdi>%s</bdi>", separator, run->label);
        if (c->n_context > 0 && !isfinite(size_of(c, run)))
            doc_html(file, " (its result does not say what a cache takes; evaluate it again)");
        else if (c->by_speed && !speed_of(run)->known)
            doc_html(file, " (not measured)");
        else
            doc_html(file, " (%.6g)", value_of(c, run));
        separator = ", ";
    }
}

/* How much text the means are of. */
static void put_windows(const struct chart *c)
{
    struct base_field root = doc_root(doc_of(c->head->from));
    size_t least = SIZE_MAX, most = 0;
    for (size_t i = 0; i < c->board->n; i++) {
        if (!is_drawn(c, i) || !c->board->runs[i].n_windows)
            continue;
        least = c->board->runs[i].n_windows < least ? c->board->runs[i].n_windows : least;
        most = c->board->runs[i].n_windows > most ? c->board->runs[i].n_windows : most;
    }
    if (least < most)
        doc_html(c->plot.file, "each on the %zu to %zu windows that it was evaluated on.", least,
                 most);
    else if (most)
        doc_html(c->plot.file, "%zu tokens of %zu window%s.", c->head->n_tokens, most,
                 status_plural(most));
    else
        doc_html(c->plot.file, "%.15g tokens of %.15g windows.",
                 (double)doc_count(root, "result.n_tokens"),
                 (double)doc_count(root, "result.n_windows"));
}

static void caption(struct chart *c, size_t n_drawn)
{
    struct base_file *file = c->plot.file;
    doc_html(file, "<figcaption>%s; %zu model%s, ", c->plot.title, n_drawn, status_plural(n_drawn));
    put_windows(c);
    if (isfinite(c->rounding))
        doc_html(file,
                 " The noise floor: the rounding of matrix products has moved none of these means "
                 "by more than about %.2g nats%s.",
                 c->rounding,
                 shows_rounding(c) ? " (the dashed line)" : ", which is below the chart");
    if (c->n_context > 0)
        doc_html(
            file,
            " The cache has keys and values in F16, or in the types that a model was evaluated "
            "with; programs round its size up.");
    if (c->by_speed)
        doc_html(file, " Speeds are <bdi>%s</bdi>.", c->board->speeds_about);
    name_others(c);
    doc_html(file, "</figcaption>\n");
}

static void set_speeds(struct chart *c)
{
    c->by_speed = true;
    c->n_context = 0;
    c->unit = (struct doc_unit){"tokens per second", 1, 2};
    c->plot.title = "Mean KL divergence against speed";
}

/* A chart for each set of comparable runs. Returns whether there is one. */
static bool draw_all(struct doc_report *r, size_t metric, bool by_speed)
{
    const struct doc_scoreboard *board = &r->results->of_texts;
    bool any = false;
    for (size_t i = 0; i < board->n; i++) {
        bool apart = metric == DOC_METRIC_PPL && board->runs[i].fewer;
        if (apart || !doc_run_is_head(board, i, metric))
            continue;
        struct chart c = make_chart(r->file, board, &board->runs[i], metric);
        c.n_context = (double)r->n_context;
        c.unit = r->unit;
        if (by_speed)
            set_speeds(&c);
        r->no_memory |= choose(&c, NULL);
        size_t n_drawn = c.flags ? fit(&c) : 0;
        if (c.flags && (n_drawn || !by_speed)) {
            any = true;
            doc_html(r->file, "<figure>");
            for (int form = 0; form < DOC_N_PAGE_FORMS && n_drawn; form++)
                draw(&c, (enum doc_form)form);
            caption(&c, n_drawn);
            doc_html(r->file, "</figure>\n");
        }
        free(c.flags);
    }
    return any;
}

void doc_report_sizes(struct doc_report *r)
{
    if (!r->results->of_texts.n) {
        doc_report_missing(r, "No divergence or perplexity: none of the results is of a text.");
        return;
    }
    doc_html(r->file, "<div class=\"pair\">\n");
    if (!draw_all(r, DOC_METRIC_KLD, false))
        doc_report_missing(r, "No divergence: none of the results is of assay kld.");
    draw_all(r, DOC_METRIC_PPL, false);
    doc_html(r->file, "</div>\n");
}

void doc_report_speeds(struct doc_report *r)
{
    if (!r->results->of_texts.has_speeds)
        doc_report_missing(r, "No speeds beside divergences: give what llama-bench prints with "
                              "-o json among the results.");
    else if (!draw_all(r, DOC_METRIC_KLD, true))
        doc_report_missing(r, "No speeds beside divergences: no model has both a divergence and a "
                              "generation speed (-n of llama-bench).");
}

enum status doc_report_size_svg(struct base_file *file, struct doc_scoreboard *board,
                                struct status_why *why)
{
    doc_runs_number(board, NULL);
    static const size_t metrics[] = {DOC_METRIC_KLD, DOC_METRIC_PPL};
    for (size_t m = 0; m < 2; m++)
        for (size_t i = 0; i < board->n; i++) {
            if (!has_metric(&board->runs[i], metrics[m]))
                continue;
            struct chart c = make_chart(file, board, &board->runs[i], metrics[m]);
            enum status status = choose(&c, why);
            size_t n_drawn = status ? 0 : fit(&c);
            if (n_drawn)
                draw(&c, DOC_ALONE);
            free(c.flags);
            if (status)
                return status;
            if (n_drawn)
                return doc_status(doc_of(board->runs[i].from), why);
        }
    return status_fail(why, STATUS_USAGE,
                       "none of the results has a divergence or a perplexity that can be drawn");
}
