/* Divergence by position and by the base's confidence: a line for each model. */
#include <math.h>

#include "clients/documents/report/html.h"
#include "clients/documents/report/plot.h"
#include "clients/documents/report/report.h"

enum { MOST_POINTS = 32, MOST_NAMES = 22, NAME_HEIGHT = 13 };

struct point {
    double x, kld, error; /* error: NaN where it is not told */
};

/* Lines over the same x. */
struct curves {
    const char *title, *x_label, *list; /* list: below a candidate */
    enum doc_scale x_scale;
    size_t (*read)(struct point points[MOST_POINTS], struct base_field list, size_t n);
};

/* The bin of a position among MOST_POINTS that are equally wide on a logarithmic axis. */
static size_t bin_of(double position, double first, double last)
{
    double share = last > first && first > 0 ? log(position / first) / log(last / first) : 0;
    return (size_t)(fmin(fmax(share, 0), 1) * (MOST_POINTS - 1) + 0.5);
}

/* Bins of neighbouring positions. Windows of documents do not all score the same ones. */
static size_t read_positions(struct point points[MOST_POINTS], struct base_field list, size_t n)
{
    struct point sums[MOST_POINTS] = {{0}};
    double weights[MOST_POINTS] = {0}, first = 0, last = 0;
    struct base_field item = {0};
    for (size_t i = 0; i < n && base_field_next(list, &item); i++) {
        last = (double)doc_count(item, "position");
        first = i ? first : last;
    }
    item = (struct base_field){0};
    while (base_field_next(list, &item)) {
        bool told = base_field_find(item, "n_tokens").json;
        double weight = told ? (double)doc_count(item, "n_tokens") : 1;
        double position = (double)doc_count(item, "position");
        size_t at = bin_of(position, first, last);
        sums[at].x += weight * position;
        sums[at].kld += weight * base_field_real_or_null(item, "kld");
        weights[at] += weight;
    }
    size_t n_points = 0;
    for (size_t i = 0; i < MOST_POINTS; i++)
        if (weights[i] > 0)
            points[n_points++] =
                (struct point){sums[i].x / weights[i], sums[i].kld / weights[i], (double)NAN};
    return n_points;
}

static size_t read_confidence(struct point points[MOST_POINTS], struct base_field list, size_t n)
{
    struct base_field item = {0};
    size_t at = 0;
    (void)n;
    while (at < MOST_POINTS && base_field_next(list, &item)) {
        double from = base_field_real_or_null(item, "from"),
               to = base_field_real_or_null(item, "to");
        bool any = doc_count(item, "n_tokens") > 0;
        points[at++] = (struct point){
            .x = 50 * (from + to),
            .kld = any ? base_field_real_or_null(item, "kld") : (double)NAN,
            .error = any ? doc_error(item, "kld_error") : (double)NAN,
        };
    }
    return at;
}

static const struct curves by_position = {"KL divergence by position in the window",
                                          "position in the window", "context_curve", DOC_LOG,
                                          read_positions};
static const struct curves by_confidence = {"KL divergence by the base's confidence",
                                            "the base's largest probability, %", "by_confidence",
                                            DOC_LINEAR, read_confidence};

/* The points of a run; 0 where its document does not have them. */
static size_t points_of(struct point points[MOST_POINTS], const struct curves *c,
                        const struct doc_scoreboard_run *run)
{
    if (!doc_run_diverges(run))
        return 0;
    struct base_field list = base_field_list_or_none(run->from, c->list);
    size_t n = base_field_count(list);
    return n ? c->read(points, list, n) : 0;
}

static void fit(struct doc_plot *p, const struct curves *c, const struct doc_scoreboard *board)
{
    double low_x = HUGE_VAL, high_x = -HUGE_VAL, low = HUGE_VAL, high = 0;
    for (size_t i = 0; i < board->n; i++) {
        struct point points[MOST_POINTS];
        size_t n = points_of(points, c, &board->runs[i]);
        for (size_t k = 0; k < n; k++) {
            if (!doc_axis_has(&p->y, points[k].kld) || !doc_axis_has(&p->x, points[k].x))
                continue;
            low_x = fmin(low_x, points[k].x);
            high_x = fmax(high_x, points[k].x);
            low = fmin(low, points[k].kld);
            high = fmax(high, points[k].kld);
        }
    }
    doc_axis_fit(&p->x, low_x, high_x);
    if (c->x_scale == DOC_LOG && high_x > low_x && low_x > 0) {
        p->x.low = low_x; /* half of what a value needs beside it would be empty */
        p->x.high = high_x;
    }
    doc_axis_fit(&p->y, low, high);
}

/* Dashes tell lines apart beside colours and names: colour alone would not, in print. */
static void draw_line(const struct doc_plot *p, const struct point *points, size_t n, size_t number)
{
    bool on = false;
    char classes[DOC_MARK];
    for (size_t k = 0; k < n; k++) {
        double x = doc_axis_at(&p->x, points[k].x);
        if (doc_axis_has(&p->y, points[k].kld) && isfinite(points[k].error))
            doc_html(p->file, "<path class=\"bar\" d=\"M%.1f %.1fV%.1f\"/>", x,
                     doc_axis_at(&p->y, fmax(points[k].kld - points[k].error, p->y.low)),
                     doc_axis_at(&p->y, points[k].kld + points[k].error));
    }
    doc_html(p->file, "<path class=\"line %s\" d=\"", doc_mark_classes(classes, number));
    for (size_t k = 0; k < n; k++) {
        bool has = doc_axis_has(&p->y, points[k].kld) && doc_axis_has(&p->x, points[k].x);
        if (has)
            doc_html(p->file, on ? "L%.1f %.1f" : "M%.1f %.1f", doc_axis_at(&p->x, points[k].x),
                     doc_axis_at(&p->y, points[k].kld));
        on = has;
    }
    doc_html(p->file, "\"/>\n");
}

/* A name at the end of its line. */
struct end {
    double x, y, at; /* of the line's last point, and the height of the name */
    const struct doc_scoreboard_run *run;
};
struct ends {
    struct end items[MOST_NAMES]; /* from top to bottom */
    size_t n;
};

static void add_end(struct ends *ends, struct end end)
{
    size_t at = ends->n;
    if (at == MOST_NAMES)
        return;
    for (; at > 0 && ends->items[at - 1].y > end.y; at--)
        ends->items[at] = ends->items[at - 1];
    ends->items[at] = end;
    ends->n++;
}

/* Names stand beside the chart in the order of their lines, apart from each other. */
static void put_names(const struct doc_plot *p, struct ends *ends)
{
    double above = p->y.to - NAME_HEIGHT, below = p->y.from + NAME_HEIGHT;
    for (size_t i = 0; i < ends->n; i++)
        above = ends->items[i].at = fmax(ends->items[i].y, above + NAME_HEIGHT);
    for (size_t i = ends->n; i-- > 0;)
        below = ends->items[i].at = fmin(ends->items[i].at, below - NAME_HEIGHT);
    for (size_t i = 0; i < ends->n; i++) {
        const struct end *end = &ends->items[i];
        char name[DOC_RUN_NAME];
        doc_html(p->file,
                 "<path class=\"bar\" d=\"M%.1f %.1fH%.1fL%.1f %.1f\"/><text class=\"name\" "
                 "x=\"%.1f\" y=\"%.1f\">%s</text>\n",
                 end->x + 2, end->y, p->x.to + 2, p->x.to + 14, end->at, p->x.to + 17, end->at + 4,
                 doc_run_name(name, end->run));
    }
}

static void draw(struct base_file *file, const struct curves *c, const struct doc_scoreboard *board,
                 enum doc_form form)
{
    struct doc_plot p = {.file = file,
                         .form = form,
                         .title = c->title,
                         .x_label = c->x_label,
                         .y_label = "mean KLD, nats",
                         .height = 360,
                         .left = 70,
                         .right = doc_names_width(board) + 22,
                         .x.scale = c->x_scale,
                         .y.scale = DOC_LOG};
    struct ends ends = {.n = 0};
    fit(&p, c, board);
    doc_plot_begin(&p);
    for (size_t i = 0; i < board->n; i++) {
        struct point points[MOST_POINTS];
        size_t n = points_of(points, c, &board->runs[i]);
        if (!n)
            continue;
        draw_line(&p, points, n, board->runs[i].number);
        while (n &&
               (!doc_axis_has(&p.y, points[n - 1].kld) || !doc_axis_has(&p.x, points[n - 1].x)))
            n--;
        if (n)
            add_end(&ends, (struct end){.x = doc_axis_at(&p.x, points[n - 1].x),
                                        .y = doc_axis_at(&p.y, points[n - 1].kld),
                                        .run = &board->runs[i]});
    }
    put_names(&p, &ends);
    doc_plot_end(&p);
}

/* A row for each point of each model. */
static void tabulate(struct base_file *file, const struct curves *c,
                     const struct doc_scoreboard *board)
{
    const char *const heads[] = {"model", "quantisation",   c->x_label,
                                 "KLD",   "standard error", NULL};
    struct doc_table t = {.file = file, .heads = heads};
    doc_table_begin_folded(&t, c->title, c->title);
    for (size_t i = 0; i < board->n; i++) {
        const struct doc_scoreboard_run *run = &board->runs[i];
        struct point points[MOST_POINTS];
        size_t n = points_of(points, c, run);
        for (size_t k = 0; k < n; k++) {
            doc_table_row(&t, "", run->label);
            doc_table_words(&t, run->quantisation);
            doc_table_number(&t, points[k].x, 1);
            doc_table_number(&t, points[k].kld, 6);
            doc_table_number(&t, points[k].error, 6);
            doc_table_row_end(&t);
        }
    }
    doc_table_end_folded(&t);
}

static void put_curves(struct doc_report *r, const struct curves *c, const char *missing)
{
    const struct doc_scoreboard *board = &r->results->of_texts;
    struct point points[MOST_POINTS];
    size_t n_with = 0;
    for (size_t i = 0; i < board->n; i++)
        n_with += points_of(points, c, &board->runs[i]) > 0;
    if (!n_with) {
        doc_report_missing(r, missing);
        return;
    }
    doc_html(r->file, "<figure>");
    for (int form = 0; form < DOC_N_PAGE_FORMS; form++)
        draw(r->file, c, board, (enum doc_form)form);
    doc_html(r->file, "<figcaption>%s%s.</figcaption></figure>\n", c->title,
             c->x_scale == DOC_LOG ? ", which has a logarithmic scale" : "");
    tabulate(r->file, c, board);
}

void doc_report_positions(struct doc_report *r)
{
    put_curves(
        r, &by_position,
        "No curve: none of the results is of assay kld with --context-curve, which adds it.");
}

void doc_report_confidence(struct doc_report *r)
{
    put_curves(r, &by_confidence, "No curve: none of the results is of assay kld.");
}
