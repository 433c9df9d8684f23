/** Charts as SVG: axes, ticks, labels. Colours and fonts are classes of page/chart.css. */
#ifndef DOCUMENTS_REPORT_PLOT_H
#define DOCUMENTS_REPORT_PLOT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/file/atomic_file.h"

struct doc_scoreboard;

enum doc_scale {
    DOC_LINEAR,
    DOC_LOG,        /* of positive values */
    DOC_SIGNED_LOG, /* asinh(10 v): linear around 0, as a logarithm beyond 0.1 */
};

/** From values to places in the drawing. */
struct doc_axis {
    enum doc_scale scale;
    double low, high; /* values, low < high */
    double from, to;  /* where these are drawn */
};

/**
 * Choose low and high around the values from `low` to `high`, with a margin. Whatever they are
 * (infinite, in the wrong order), the axis can be drawn.
 */
void doc_axis_fit(struct doc_axis *axis, double low, double high);
/** Whether a value has a place: finite, and positive on a logarithmic axis. */
bool doc_axis_has(const struct doc_axis *axis, double value);
/** Where a value is drawn; beyond the ends, at the end. Always finite. */
double doc_axis_at(const struct doc_axis *axis, double value);

/**
 * The forms of a chart. A page has each chart twice, and shows the one that its width has room for:
 * text has the same size on both.
 */
enum doc_form { DOC_WIDE, DOC_NARROW, DOC_ALONE /* a file of its own, with its style */ };
enum { DOC_N_PAGE_FORMS = 2 };

/** A chart. Set all but the axes' from and to. */
struct doc_plot {
    struct base_file *file;
    enum doc_form form;
    const char *title;             /* what it shows, for those who do not see it */
    const char *x_label, *y_label; /* y_label NULL: no y axis, rows with names */
    double height;                 /* in the units of the drawing, doc_plot_width() wide */
    double left, right;            /* margins beside the axes */
    struct doc_axis x, y;
};

/** The width of a form's drawing. */
double doc_plot_width(enum doc_form form);
/** The width of a text of n characters, as the page's style draws names. */
double doc_text_width(const char *text);
/** The width of the longest name of a board's runs. */
double doc_names_width(const struct doc_scoreboard *board);

/** Begin the drawing, with its axes, and place x and y. */
void doc_plot_begin(struct doc_plot *plot);
void doc_plot_end(struct doc_plot *plot);

/** A model's mark, in the colour and form of its number; filled: or only its outline. */
void doc_plot_mark(const struct doc_plot *plot, double x, double y, size_t number, bool filled);
void doc_plot_mark_end(const struct doc_plot *plot);

/** What no label may cover. */
struct doc_label_box {
    double left, right, top, bottom;
    bool thin; /* of a line, which the line to a label may cross */
};
/** Labels of marks: near them, or where there is room at the end of a line from the mark. */
struct doc_labels {
    struct doc_label_box boxes[320];
    size_t n;
};
/** Keep the place of a mark, or of a vertical line, free of labels. */
void doc_labels_keep(struct doc_labels *labels, double x, double y);
void doc_labels_keep_bar(struct doc_labels *labels, double x, double top, double bottom);
/** Write the label of the mark at (x, y). Returns whether there was room. */
bool doc_labels_put(struct doc_labels *labels, const struct doc_plot *plot, double x, double y,
                    const char *text);

#endif
