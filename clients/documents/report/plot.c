#include "clients/documents/report/plot.h"

#include <math.h>
#include <stdint.h>

#include "clients/documents/report/html.h"
#include "clients/documents/report/parts.h"
#include "clients/documents/report/shared/models.h"

enum { TOP = 14, BOTTOM = 46, MOST_TICKS = 12 };
static const double largest = 1e300, label_width = 7, label_height = 13;
static const double tick_width = 52, tick_height = 24; /* room for the text of a tick */

static double bent(const struct doc_axis *a, double v)
{
    return a->scale == DOC_LOG ? log10(v) : a->scale == DOC_SIGNED_LOG ? asinh(10 * v) : v;
}

static double between(double low, double v, double high)
{
    return v < high ? (v > low ? v : low) : high; /* NaN: the last */
}

void doc_axis_fit(struct doc_axis *a, double low, double high)
{
    double least = a->scale == DOC_LOG ? 1 / largest : -largest;
    low = between(least, low, largest);
    high = between(low, high, largest);
    if (a->scale == DOC_LOG) {
        a->low = low / 1.5;
        a->high = high * 1.5;
        return;
    }
    double margin = high > low ? 0.06 * (high - low) : fmax(fabs(low), 1e-3) * 0.1;
    a->low = low - margin;
    a->high = high + margin;
}

bool doc_axis_has(const struct doc_axis *a, double value)
{
    return isfinite(value) && (a->scale != DOC_LOG || value > 0);
}

double doc_axis_at(const struct doc_axis *a, double value)
{
    double low = bent(a, a->low), high = bent(a, a->high);
    value = between(a->low, value, a->high);
    return a->from + (bent(a, value) - low) / (high - low) * (a->to - a->from);
}

/* 1, 2 or 5 times a power of ten, so that a range has at most so many steps of it. */
static double step_of(double range, double most)
{
    double step = pow(10, floor(log10(range / most)));
    double n = range / step / most;
    return n <= 1 ? step : n <= 2 ? 2 * step : n <= 5 ? 5 * step : 10 * step;
}

static size_t even_ticks(double ticks[MOST_TICKS], const struct doc_axis *a, double most)
{
    size_t n = 0;
    double step = step_of(a->high - a->low, most), first = ceil(a->low / step);
    for (; n < MOST_TICKS && (first + (double)n) * step <= a->high; n++)
        ticks[n] = (first + (double)n) * step;
    return n;
}

/* Powers of ten; 1, 2 and 5 times these where there is room; even ones where even that is coarse.
 */
static size_t log_ticks(double ticks[MOST_TICKS], const struct doc_axis *a, double most)
{
    static const double fine[] = {1, 2, 5};
    double decades = log10(a->high) - log10(a->low);
    if (decades < 0.7)
        return even_ticks(ticks, a, fmin(most, 6));
    size_t n = 0, n_fine = 3 * decades <= fmin(most, 7) ? 3 : 1;
    double step = fmax(1, ceil(decades / fmin(most, 7)));
    for (double e = floor(log10(a->low)); e <= log10(a->high); e += step)
        for (size_t i = 0; i < n_fine && n < MOST_TICKS; i++) {
            double tick = fine[i] * pow(10, e);
            if (tick >= a->low && tick <= a->high)
                ticks[n++] = tick;
        }
    return n;
}

/* room: what the text of a tick takes of the axis. */
static size_t ticks_of(double ticks[MOST_TICKS], const struct doc_axis *a, double room)
{
    static const double signs[] = {-100, -10, -1, -0.1, 0, 0.1, 1, 10, 100};
    double most = fmin(fmax(2, fabs(a->to - a->from) / room), MOST_TICKS - 1);
    if (a->scale == DOC_LOG)
        return log_ticks(ticks, a, most);
    if (a->scale == DOC_LINEAR)
        return even_ticks(ticks, a, most);
    bool near = fabs(doc_axis_at(a, 0.1) - doc_axis_at(a, 0)) < room / 2;
    size_t n = 0;
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (signs[i] >= a->low && signs[i] <= a->high &&
            !(near && fabs(fabs(signs[i]) - 0.1) < 0.01))
            ticks[n++] = signs[i];
    return n;
}

static void draw_axis(const struct doc_plot *p, const struct doc_axis *a, bool is_x)
{
    double ticks[MOST_TICKS];
    size_t n = ticks_of(ticks, a, is_x ? tick_width : tick_height);
    for (size_t i = 0; i < n; i++) {
        double at = doc_axis_at(a, ticks[i]);
        double tick = fabs(ticks[i]) < 1e-12 * (a->high - a->low) ? 0 : ticks[i];
        if (is_x)
            doc_html(p->file,
                     "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/><text class=\"tick\" x=\"%.1f\" "
                     "y=\"%.1f\" text-anchor=\"middle\">%.5g</text>\n",
                     at, p->y.to, p->y.from, at, p->y.from + 16, tick);
        else
            doc_html(p->file,
                     "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/><text class=\"tick\" x=\"%.1f\" "
                     "y=\"%.1f\" text-anchor=\"end\">%.5g</text>\n",
                     p->x.from, at, p->x.to, p->x.from - 6, at + 4, tick);
    }
}

double doc_plot_width(enum doc_form form)
{
    static const double widths[] = {[DOC_WIDE] = 620, [DOC_NARROW] = 358, [DOC_ALONE] = 720};
    return widths[form];
}

double doc_text_width(const char *text)
{
    double width = 0;
    for (const char *c = text; *c; c++)
        width += ((unsigned char)*c & 0xc0) != 0x80 ? label_width : 0;
    return width;
}

double doc_names_width(const struct doc_scoreboard *board)
{
    double width = 0;
    char name[DOC_RUN_NAME];
    for (size_t i = 0; i < board->n; i++)
        width = fmax(width, doc_text_width(doc_run_name(name, &board->runs[i])));
    return width;
}

void doc_plot_begin(struct doc_plot *p)
{
    static const char *const classes[] = {
        [DOC_WIDE] = "chart wide", [DOC_NARROW] = "chart narrow", [DOC_ALONE] = "chart"};
    p->x.from = p->left;
    p->x.to = doc_plot_width(p->form) - p->right;
    p->y.from = p->height - BOTTOM;
    p->y.to = TOP;
    doc_html(p->file,
             "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"%s\" viewBox=\"0 0 %.0f %.0f\" "
             "role=\"img\" aria-label=\"%s\">\n<title>%s</title>\n",
             classes[p->form], doc_plot_width(p->form), p->height, p->title, p->title);
    if (p->form == DOC_ALONE) {
        doc_html(p->file, "<style>\n");
        base_file_write(p->file, doc_part_chart_css.data, doc_part_chart_css.n_bytes);
        doc_html(p->file, "</style>\n<rect class=\"paper\" width=\"100%%\" height=\"100%%\"/>\n");
    }
    draw_axis(p, &p->x, true);
    if (p->y_label)
        draw_axis(p, &p->y, false);
    doc_html(p->file, "<path class=\"axis\" d=\"M%.1f %.1fV%.1fH%.1f\"/>\n", p->x.from, p->y.to,
             p->y.from, p->x.to);
    doc_html(p->file,
             "<text class=\"label\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n",
             (p->x.from + p->x.to) / 2, p->y.from + 36, p->x_label);
    if (p->y_label)
        doc_html(p->file,
                 "<text class=\"label\" transform=\"translate(14 %.1f) rotate(-90)\" "
                 "text-anchor=\"middle\">%s</text>\n",
                 (p->y.from + p->y.to) / 2, p->y_label);
}

void doc_plot_end(struct doc_plot *p)
{
    doc_html(p->file, "</svg>\n");
}

void doc_plot_mark(const struct doc_plot *p, double x, double y, size_t number, bool filled)
{
    static const char *const forms[] = {"m-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z",
                                        "m-4 -4h8v8h-8z", "m0 -5.5l5 9.5h-10z",
                                        "m0 -6l5.5 6l-5.5 6l-5.5 -6z"};
    char classes[DOC_MARK];
    size_t form = number % (sizeof forms / sizeof *forms);
    doc_html(p->file, "<path class=\"dot %s%s\" d=\"M%.1f %.1f%s\"><title>",
             doc_mark_classes(classes, number), filled ? " best" : "", x, y,
             forms[number == SIZE_MAX ? 0 : form]);
}

void doc_plot_mark_end(const struct doc_plot *p)
{
    doc_html(p->file, "</title></path>\n");
}

/* Whether a box meets none of those that are kept; thin ones, of lines, only where they count. */
static bool is_free(const struct doc_labels *l, struct doc_label_box box, bool with_thin)
{
    for (size_t i = 0; i < l->n; i++) {
        const struct doc_label_box *other = &l->boxes[i];
        if ((with_thin || !other->thin) && box.left < other->right && box.right > other->left &&
            box.top < other->bottom && box.bottom > other->top)
            return false;
    }
    return true;
}

static void add_box(struct doc_labels *l, struct doc_label_box box)
{
    if (l->n < sizeof l->boxes / sizeof *l->boxes)
        l->boxes[l->n++] = box;
}

void doc_labels_keep(struct doc_labels *l, double x, double y)
{
    add_box(l, (struct doc_label_box){x - 5, x + 5, y - 5, y + 5, false});
}

void doc_labels_keep_bar(struct doc_labels *l, double x, double top, double bottom)
{
    add_box(l, (struct doc_label_box){x - 1, x + 1, top, bottom, true});
}

/* Where a label may stand: its near end, and the side of that on which it lies, -1, 0 or 1. */
struct place {
    double x, y;
    int side;
};

/* The box of a label at a place; false: it is not within the drawing, or another one is there. */
static bool has_room(struct doc_label_box *box, const struct doc_labels *l,
                     const struct doc_plot *p, const struct place *at, double width, bool with_thin)
{
    double left = at->x + (at->side - 1) / 2.0 * width;
    *box = (struct doc_label_box){left, left + width, at->y - label_height / 2,
                                  at->y + label_height / 2, false};
    return box->left >= p->x.from && box->right <= doc_plot_width(p->form) && box->top >= 0 &&
           box->bottom <= p->y.from && is_free(l, *box, with_thin);
}

static void put_label(const struct doc_plot *p, const struct place *at, const char *text)
{
    static const char *const anchors[] = {"end", "middle", "start"};
    doc_html(p->file, "<text class=\"name\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n",
             at->x, at->y + 4, anchors[1 + at->side], text);
}

/* A line from a mark to its label: free of marks and labels. draw: and keep others away from it. */
static bool lead(struct doc_labels *l, const struct doc_plot *p, double x, double y,
                 const struct place *to, bool draw)
{
    enum { STEP = 6, FROM_MARK = 9 };
    double length = hypot(to->x - x, to->y - y);
    double dx = (to->x - x) / length, dy = (to->y - y) / length;
    for (double at = FROM_MARK; at < length - 2; at += STEP) {
        double px = x + at * dx, py = y + at * dy;
        struct doc_label_box box = {px - 2, px + 2, py - 2, py + 2, true};
        if (draw)
            add_box(l, box);
        else if (!is_free(l, box, false))
            return false;
    }
    if (draw)
        doc_html(p->file, "<path class=\"leader\" d=\"M%.1f %.1fL%.1f %.1f\"/>", x + 6 * dx,
                 y + 6 * dy, to->x - 1.5 * dx, to->y - 1.5 * dy);
    return true;
}

/* The n-th place of a mark's label, from near to far; false: there is no more. */
static bool place_of(struct place *at, double x, double y, size_t n)
{
    enum { N_ANGLES = 16, N_RINGS = 18, NEAREST = 20, RING = 10 };
    static const struct place near[] = {{7, -10, 1}, {-7, 10, -1},  {8, 0, 1},   {-8, 0, -1},
                                        {7, 10, 1},  {-7, -10, -1}, {0, -14, 0}, {0, 14, 0}};
    enum { N_NEAR = sizeof near / sizeof *near };
    if (n < N_NEAR) {
        *at = (struct place){x + near[n].x, y + near[n].y, near[n].side};
        return true;
    }
    size_t ring = (n - N_NEAR) / N_ANGLES, turn = (n - N_NEAR) % N_ANGLES;
    double radius = NEAREST + RING * (double)ring;
    double angle = acos(-1) * (2 * (double)turn + 1) / N_ANGLES;
    double dx = cos(angle), dy = -sin(angle);
    *at = (struct place){x + radius * dx, y + radius * dy, dx > 0.3 ? 1 : dx < -0.3 ? -1 : 0};
    at->y += at->side ? 0 : (dy > 0 ? label_height : -label_height) / 2;
    return ring < N_RINGS;
}

bool doc_labels_put(struct doc_labels *l, const struct doc_plot *p, double x, double y,
                    const char *text)
{
    enum { CLEAR, LINE_CROSSES, COVERS_LINES, N_WAYS }; /* from good to bearable */
    double width = doc_text_width(text);
    struct doc_label_box box;
    struct place at;
    for (int way = CLEAR; way < N_WAYS; way++)
        for (size_t n = 0; place_of(&at, x, y, n); n++) {
            bool far = hypot(at.x - x, at.y - y) > 15;
            if (!has_room(&box, l, p, &at, width, way < COVERS_LINES) ||
                (far && way == CLEAR && !lead(l, p, x, y, &at, false)))
                continue;
            if (far)
                lead(l, p, x, y, &at, true);
            add_box(l, box);
            put_label(p, &at, text);
            return true;
        }
    return false;
}
