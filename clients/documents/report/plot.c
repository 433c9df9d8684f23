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
        base_file_write(p->file, doc_part_chart_css.bytes, doc_part_chart_css.n_bytes);
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

static bool is_free(const struct doc_labels *l, double left, double right, double top,
                    double bottom)
{
    for (size_t i = 0; i < l->n; i++)
        if (left < l->boxes[i].right && right > l->boxes[i].left && top < l->boxes[i].bottom &&
            bottom > l->boxes[i].top)
            return false;
    return true;
}

static void add_box(struct doc_labels *l, double left, double right, double top, double bottom)
{
    if (l->n == sizeof l->boxes / sizeof *l->boxes)
        return;
    l->boxes[l->n].left = left;
    l->boxes[l->n].right = right;
    l->boxes[l->n].top = top;
    l->boxes[l->n++].bottom = bottom;
}

void doc_labels_keep(struct doc_labels *l, double x, double y)
{
    add_box(l, x - 5, x + 5, y - 5, y + 5);
}

bool doc_labels_put(struct doc_labels *l, const struct doc_plot *p, double x, double y,
                    const char *text)
{
    static const struct {
        double dx, dy, side; /* of the label's near end and middle; -1, 0, 1: it lies to the ... */
    } places[] = {{7, -10, 1}, {-7, 10, -1},  {8, 0, 1},   {-8, 0, -1},
                  {7, 10, 1},  {-7, -10, -1}, {0, -14, 0}, {0, 14, 0}};
    static const char *const anchors[] = {"end", "middle", "start"};
    double width = doc_text_width(text);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        double at = x + places[i].dx, middle = y + places[i].dy;
        double left = at + (places[i].side - 1) / 2 * width, right = left + width;
        double top = middle - label_height / 2, bottom = middle + label_height / 2;
        if (left < p->x.from || right > doc_plot_width(p->form) || top < 0 || bottom > p->y.from ||
            !is_free(l, left, right, top, bottom))
            continue;
        add_box(l, left, right, top, bottom);
        doc_html(p->file,
                 "<text class=\"name\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", at,
                 middle + 4, anchors[1 + (int)places[i].side], text);
        return true;
    }
    return false;
}
