#include "documents/report/plot.h"

#include <math.h>

#include "documents/report/html.h"
#include "documents/report/parts.h"

enum { TOP = 14, BOTTOM = 46, MOST_TICKS = 12 };
static const double largest = 1e300, label_width = 6.4, label_height = 13;

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

/* 1, 2 or 5 times a power of ten, so that a range has four to ten steps of it. */
static double step_of(double range)
{
    double step = pow(10, floor(log10(range / 4)));
    return range / step >= 20 ? 5 * step : range / step >= 10 ? 2 * step : step;
}

static size_t ticks_of(double ticks[MOST_TICKS], const struct doc_axis *a)
{
    static const double signs[] = {-100, -10, -1, -0.1, 0, 0.1, 1, 10, 100};
    static const double fine[] = {1, 2, 5};
    size_t n = 0;
    double decades = log10(a->high) - log10(a->low);
    if (a->scale == DOC_SIGNED_LOG) {
        for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
            if (signs[i] >= a->low && signs[i] <= a->high)
                ticks[n++] = signs[i];
    } else if (a->scale == DOC_LOG) {
        double step = fmax(1, ceil(decades / 6));
        size_t n_fine = decades < 2 ? 3 : 1;
        double e = floor(log10(a->low));
        while (e <= log10(a->high)) {
            for (size_t i = 0; i < n_fine && n < MOST_TICKS; i++) {
                double tick = fine[i] * pow(10, e);
                if (tick >= a->low && tick <= a->high)
                    ticks[n++] = tick;
            }
            e += step;
        }
    } else {
        double step = step_of(a->high - a->low), first = ceil(a->low / step);
        for (; n < MOST_TICKS && (first + (double)n) * step <= a->high; n++)
            ticks[n] = (first + (double)n) * step;
    }
    return n;
}

static void draw_axis(const struct doc_plot *p, const struct doc_axis *a, bool is_x)
{
    double ticks[MOST_TICKS];
    size_t n = ticks_of(ticks, a);
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

void doc_plot_begin(struct doc_plot *p)
{
    p->x.from = p->left;
    p->x.to = DOC_PLOT_WIDTH - p->right;
    p->y.from = p->height - BOTTOM;
    p->y.to = TOP;
    doc_html(p->file,
             "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" viewBox=\"0 0 %d %.0f\" "
             "role=\"img\" aria-label=\"%s\">\n<title>%s</title>\n",
             (int)DOC_PLOT_WIDTH, p->height, p->title, p->title);
    if (p->stands_alone) {
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
    double width = 0;
    for (const char *c = text; *c; c++)
        width += ((unsigned char)*c & 0xc0) != 0x80 ? label_width : 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        double at = x + places[i].dx, middle = y + places[i].dy;
        double left = at + (places[i].side - 1) / 2 * width, right = left + width;
        double top = middle - label_height / 2, bottom = middle + label_height / 2;
        if (left < p->x.from || right > DOC_PLOT_WIDTH || top < 0 || bottom > p->y.from ||
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
