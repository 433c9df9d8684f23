#include "clients/documents/report/heatmap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "clients/documents/report/html.h"

enum { CELL_W = 26, CELL_H = 16, LEFT = 90, TOP = 130, GAP = 40, RIGHT = 40, KEY_STEPS = 32 };

/** Where the cells of all candidates lie. */
struct map {
    const struct doc_heatmap *s;
    const char *columns[DOC_MOST_HEAT_LINES]; /* [n_columns]: kinds */
    size_t rows[DOC_MOST_HEAT_LINES];         /* [n_rows]: layers, SIZE_MAX those in none */
    size_t n_columns, n_rows;
    size_t *column_of; /* [cells] */
    double low, high;  /* log10 of the smallest and the largest divergence */
};

void doc_heat_colour(double x, char out[8])
{
    static const double stops[][3] = {
        {68, 1, 84}, {59, 82, 139}, {33, 145, 140}, {94, 201, 98}, {253, 231, 37}};
    enum { LAST = sizeof stops / sizeof *stops - 1 };
    x = x > 0 ? (x < 1 ? x : 1) * LAST : 0;
    int i = x < LAST ? (int)x : LAST - 1;
    unsigned rgb[3];
    for (int k = 0; k < 3; k++)
        rgb[k] = (unsigned)lround(stops[i][k] + (x - i) * (stops[i + 1][k] - stops[i][k]));
    snprintf(out, 8, "#%02x%02x%02x", rgb[0] & 255, rgb[1] & 255, rgb[2] & 255);
}

static int compare_rows(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

/** Rows and columns: kinds in the order of the cells, layers in their own. */
static enum status lay_out(struct map *m, struct status_why *why)
{
    const struct doc_heatmap *s = m->s;
    m->low = HUGE_VAL;
    m->high = -HUGE_VAL;
    for (size_t i = 0; i < s->n_cells; i++) {
        const struct doc_heat_cell *cell = &s->cells[i];
        size_t c = 0, r = 0;
        while (c < m->n_columns && strcmp(m->columns[c], cell->kind) != 0)
            c++;
        while (r < m->n_rows && m->rows[r] != cell->layer)
            r++;
        if (c == DOC_MOST_HEAT_LINES || r == DOC_MOST_HEAT_LINES)
            return status_fail(why, STATUS_UNSUPPORTED,
                               "a picture has %d layers and kinds of tensors at most",
                               (int)DOC_MOST_HEAT_LINES);
        m->columns[c] = cell->kind;
        m->rows[r] = cell->layer;
        m->n_columns += c == m->n_columns;
        m->n_rows += r == m->n_rows;
        m->column_of[i] = c;
        double x = log10(cell->nats);
        if (isfinite(x) && !cell->below) {
            m->low = fmin(m->low, x);
            m->high = fmax(m->high, x);
        }
    }
    qsort(m->rows, m->n_rows, sizeof *m->rows, compare_rows);
    return STATUS_OK;
}

static double shade(const struct map *m, double log_kld)
{
    return m->high > m->low ? (log_kld - m->low) / (m->high - m->low) : 1;
}

static size_t row_of(const struct map *m, size_t layer)
{
    size_t r = 0;
    while (m->rows[r] != layer)
        r++;
    return r;
}

/** A cell, with its figures where the pointer is on it. */
static void draw_cell(const struct map *m, struct base_file *file, size_t i, size_t top)
{
    const struct doc_heat_cell *cell = &m->s->cells[i];
    char fill[8];
    doc_heat_colour(shade(m, log10(cell->nats)), fill);
    bool clear = !cell->below && cell->nats > 0;
    base_file_printf(file, "<rect x=\"%zu\" y=\"%zu\" width=\"%d\" height=\"%d\" %s%s\"><title>",
                     LEFT + m->column_of[i] * CELL_W, top + row_of(m, cell->layer) * CELL_H,
                     CELL_W - 2, CELL_H - 2, clear ? "fill=\"" : "class=\"n", clear ? fill : "");
    doc_html(file, "%s: %s", cell->group, cell->type);
    base_file_printf(file, ", %.4e &#177; %.1e nats, %.3f %s saved", cell->nats, cell->error,
                     cell->saved_bytes / m->s->unit_bytes, m->s->unit);
    doc_html(file, "%s%s</title></rect>\n", cell->below ? "; below " : "",
             cell->below ? cell->below : "");
}

static void draw_panel(const struct map *m, struct base_file *file, size_t candidate, size_t y)
{
    size_t top = y + TOP;
    doc_html(file, "<text x=\"10\" y=\"%zu\" class=\"h\">%s</text>\n", y + 20,
             m->s->candidates[candidate]);
    for (size_t c = 0; c < m->n_columns; c++) {
        size_t x = LEFT + c * CELL_W + CELL_W / 2 + 4;
        doc_html(file, "<text transform=\"translate(%zu %zu) rotate(-60)\">%s</text>\n", x, top - 6,
                 m->columns[c]);
    }
    for (size_t r = 0; r < m->n_rows; r++) {
        base_file_printf(file, "<text x=\"%d\" y=\"%zu\" text-anchor=\"end\">", LEFT - 8,
                         top + r * CELL_H + CELL_H - 5);
        if (m->rows[r] == SIZE_MAX)
            base_file_printf(file, "no layer</text>\n");
        else
            base_file_printf(file, "%zu</text>\n", m->rows[r]);
    }
    for (size_t i = 0; i < m->s->n_cells; i++)
        if (m->s->cells[i].candidate == candidate)
            draw_cell(m, file, i, top);
}

/** What the colours mean. */
static void draw_key(const struct map *m, struct base_file *file, size_t y)
{
    if (!isfinite(m->low))
        return;
    for (int i = 0; i < KEY_STEPS; i++) {
        char fill[8];
        doc_heat_colour((double)i / (KEY_STEPS - 1), fill);
        base_file_printf(file, "<rect x=\"%d\" y=\"%zu\" width=\"8\" height=\"12\" fill=\"%s\"/>\n",
                         LEFT + 8 * i, y, fill);
    }
    base_file_printf(file,
                     "<text x=\"%d\" y=\"%zu\">%.1e</text><text x=\"%d\" y=\"%zu\" "
                     "text-anchor=\"end\">%.1e nats</text>\n",
                     LEFT, y + 26, pow(10, m->low), LEFT + 8 * KEY_STEPS, y + 26, pow(10, m->high));
}

static void draw(const struct map *m, struct base_file *file)
{
    size_t panel = TOP + m->n_rows * CELL_H + GAP;
    size_t width = LEFT + m->n_columns * CELL_W + RIGHT + TOP / 2;
    width = width < LEFT + 8 * KEY_STEPS + RIGHT ? LEFT + 8 * KEY_STEPS + RIGHT : width;
    size_t height = m->s->n_candidates * panel + 50;
    base_file_printf(file,
                     "<svg%s xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %zu %zu\" "
                     "width=\"%zu\" height=\"%zu\">\n",
                     m->s->stands_alone ? ""
                                        : " class=\"chart heat\" role=\"img\" aria-label=\"What "
                                          "tensors add to the divergence\"",
                     width, height, width, height);
    if (m->s->stands_alone)
        base_file_printf(
            file, "<style>text{font:11px sans-serif;fill:#222}.h{font-size:14px}"
                  ".b{fill:#fff}.n{fill:#8886;stroke:#888;stroke-dasharray:2}"
                  "@media(prefers-color-scheme:dark){text{fill:#ddd}.b{fill:#16181c}}</style>\n"
                  "<rect class=\"b\" width=\"100%%\" height=\"100%%\"/>\n");
    for (size_t c = 0; c < m->s->n_candidates; c++)
        draw_panel(m, file, c, c * panel);
    draw_key(m, file, m->s->n_candidates * panel);
    base_file_printf(file, "</svg>\n");
}

enum status doc_heatmap_draw(struct base_file *file, const struct doc_heatmap *map,
                             struct status_why *why)
{
    struct map *m;
    enum status status = base_array_new(m, 1, "picture", why);
    if (status)
        return status;
    *m = (struct map){.s = map};
    status = base_array_new(m->column_of, map->n_cells, "cells of a picture", why);
    if (!status)
        status = lay_out(m, why);
    if (!status)
        draw(m, file);
    free(m->column_of);
    free(m);
    return status;
}
