#include "clients/documents/report/shared/table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text/number.h"
#include "base/text/printable.h"
#include "clients/documents/report/html.h"

const char *doc_number(char out[DOC_NUMBER_TEXT], double value, int n_decimals)
{
    if (isnan(value))
        snprintf(out, DOC_NUMBER_TEXT, "-");
    else if (fabs(value) < 1e15)
        snprintf(out, DOC_NUMBER_TEXT, "%.*f", n_decimals, base_shown(value, n_decimals));
    else
        snprintf(out, DOC_NUMBER_TEXT, "%g", value);
    return out;
}

void doc_table_begin(struct doc_table *t, const char *classes, const char *name, size_t n_words)
{
    doc_html(t->file,
             "<div class=\"scrolls\" role=\"region\" aria-label=\"%s\" tabindex=\"0\">\n"
             "<table class=\"%s\">\n<caption>%s</caption>\n<thead><tr>",
             name, classes, name);
    for (size_t i = 0; t->heads[i]; i++)
        doc_html(t->file, "<th scope=\"col\" class=\"%s\">%s</th>", i < n_words ? "w" : "n",
                 t->heads[i]);
    doc_html(t->file, "</tr></thead>\n<tbody>\n");
}

void doc_table_end(struct doc_table *t)
{
    doc_html(t->file, "</tbody>\n</table>\n</div>\n");
}

void doc_table_begin_folded(struct doc_table *t, const char *title, const char *name)
{
    doc_html(t->file, "<details><summary>%s: numbers</summary>\n", title);
    doc_table_begin(t, "sortable", name, 2);
}

void doc_table_end_folded(struct doc_table *t)
{
    doc_table_end(t);
    doc_html(t->file, "</details>\n");
}

void doc_table_row(struct doc_table *t, const char *classes, const char *head)
{
    t->column = 1;
    doc_html(t->file, "<tr><th scope=\"row\" class=\"%s\"><bdi>%s</bdi></th>", classes, head);
}

void doc_table_row_end(struct doc_table *t)
{
    doc_html(t->file, "</tr>\n");
}

void doc_table_words(struct doc_table *t, const char *words)
{
    doc_html(t->file, "<td data-label=\"%s\"><bdi>%s</bdi></td>", t->heads[t->column++], words);
}

void doc_table_cell(struct doc_table *t, const char *classes, double value)
{
    doc_html(t->file, "<td class=\"n%s%s\" data-label=\"%s\" data-value=\"%.17g\"><span>",
             *classes ? " " : "", classes, t->heads[t->column++], value);
}

void doc_table_cell_end(struct doc_table *t)
{
    doc_html(t->file, "</span></td>");
}

void doc_table_number(struct doc_table *t, double value, int n_decimals)
{
    char text[DOC_NUMBER_TEXT];
    doc_table_cell(t, "", value);
    doc_html(t->file, "%s", doc_number(text, value, n_decimals));
    doc_table_cell_end(t);
}

void doc_table_short(struct doc_table *t, double value)
{
    char text[BASE_FIGURE_BYTES];
    doc_table_cell(t, "", value);
    doc_html(t->file, "%s", base_figure(text, value, 3));
    doc_table_cell_end(t);
}

void doc_table_figure(struct doc_table *t, double value, double error)
{
    char text[BASE_FIGURE_BYTES];
    doc_html(t->file,
             "<td class=\"n\" data-label=\"%s\" data-value=\"%.17g\" title=\"%.9g ± %.3g\"><span>",
             t->heads[t->column++], value, value, error);
    base_figure_with_error(text, value, error);
    size_t n = strcspn(text, " ");
    base_file_write(t->file, text, n);
    if (text[n])
        doc_html(t->file, " <span class=\"error\">%s</span>", text + n + 1);
    doc_table_cell_end(t);
}

void doc_table_value(struct doc_table *t, const struct doc_metric *m,
                     const struct doc_metric_value *v)
{
    char text[DOC_NUMBER_TEXT];
    double value = v->known ? m->as->scale * v->value : (double)NAN;
    if (v->known && m->kind != DOC_REAL && !isnan(v->error)) {
        doc_table_figure(t, value, m->as->scale * v->error);
        return;
    }
    doc_table_cell(t, "", value);
    doc_html(t->file, "%s", v->known ? doc_number(text, value, m->as->n_decimals) : "-");
    doc_table_cell_end(t);
}
