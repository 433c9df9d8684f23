/* The head of the page, the scoreboard, and what all parts write tables with. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text/printable.h"
#include "documents/report/html.h"
#include "documents/report/report.h"

enum { NAME_CHARACTERS = 24 };
static const double gibibyte = 1073741824.0;

const char *doc_run_name(struct base_label *out, const struct doc_scoreboard_run *run)
{
    return base_label_fit(out, run->label, NAME_CHARACTERS);
}

bool doc_run_diverges(const struct doc_scoreboard_run *run)
{
    return run->values[DOC_METRIC_KLD].known;
}

static const char *shown(char out[DOC_METRIC_TEXT], double value, int n_decimals)
{
    if (fabs(value) < 1e15)
        snprintf(out, DOC_METRIC_TEXT, "%.*f", n_decimals, base_shown(value, n_decimals));
    else
        snprintf(out, DOC_METRIC_TEXT, "%g", base_unsigned_nan(value));
    return out;
}

void doc_report_number(struct base_file *file, double value, int n_decimals)
{
    char text[DOC_METRIC_TEXT];
    doc_html(file, "<td class=\"n\" data-value=\"%.17g\">%s</td>", value,
             shown(text, value, n_decimals));
}

void doc_report_value(struct base_file *file, const struct doc_metric *m,
                      const struct doc_metric_value *v)
{
    char text[DOC_METRIC_TEXT];
    if (!v->known || !m->error) {
        if (v->known)
            doc_report_number(file, m->scale * v->value, m->n_decimals);
        else
            doc_html(file, "<td class=\"n\" data-value=\"nan\">-</td>");
        return;
    }
    doc_html(file, "<td class=\"n\" data-value=\"%.17g\">%s", m->scale * v->value,
             shown(text, m->scale * v->value, m->n_decimals));
    doc_html(file, " <span class=\"error\">± %s</span></td>",
             shown(text, m->scale * v->error, m->n_decimals));
}

void doc_report_table(struct base_file *file, const char *classes, const char *name)
{
    doc_html(file,
             "<div class=\"wide\" role=\"region\" aria-label=\"%s\" tabindex=\"0\">\n"
             "<table class=\"%s\">\n<caption>%s</caption>\n",
             name, classes, name);
}

void doc_report_table_end(struct base_file *file)
{
    doc_html(file, "</tbody>\n</table>\n</div>\n");
}

void doc_report_heads(struct base_file *file, const char *const *heads, size_t n_words)
{
    doc_html(file, "<thead><tr>");
    for (size_t i = 0; heads[i]; i++)
        doc_html(file, "<th scope=\"col\" class=\"%s\">%s</th>", i < n_words ? "w" : "n", heads[i]);
    doc_html(file, "</tr></thead>\n<tbody>\n");
}

void doc_report_figure(struct base_file *file, const char *title)
{
    doc_html(file,
             "<figure><div class=\"wide\" role=\"region\" aria-label=\"%s\" tabindex=\"0\">\n",
             title);
}

void doc_report_numbers(struct base_file *file, const char *title, const char *name,
                        const char *const *heads)
{
    doc_html(file, "<details><summary>%s: numbers</summary>\n", title);
    doc_report_table(file, "sortable", name);
    doc_report_heads(file, heads, 2);
}

void doc_report_numbers_end(struct base_file *file)
{
    doc_report_table_end(file);
    doc_html(file, "</details>\n");
}

void doc_report_row(struct base_file *file, const char *head, const char *text)
{
    doc_html(file, "<tr><th scope=\"row\"><bdi>%s</bdi></th><td><bdi>%s</bdi></td>", head, text);
}

void doc_report_missing(struct doc_report *r, const char *sentence)
{
    doc_html(r->file, "<p class=\"missing\">%s</p>\n", sentence);
}

void doc_report_summary(struct doc_report *r)
{
    size_t n_results = 0;
    const char *swept = "";
    for (size_t i = 0; i < r->results->n; i++) {
        struct doc_field root = doc_root(&r->results->documents[i]);
        n_results += root.value != NULL;
        if (root.value && root.document->kind == DOC_SWEEP)
            swept = doc_field_text(&root, "base.name");
    }
    const struct doc_scoreboard *board =
        r->results->of_texts.n ? &r->results->of_texts : &r->results->of_tasks;
    doc_html(r->file, "<p><strong><bdi>%s</bdi></strong>: %zu result%s of assay.</p>\n",
             board->n ? board->runs[0].name : swept, n_results, status_plural(n_results));
    for (size_t i = 0; i < r->results->n_notes; i++)
        doc_html(r->file, "<p class=\"note\"><bdi>%s</bdi></p>\n", r->results->notes[i].text);
    for (size_t i = 0; i < r->results->n; i++) {
        struct doc_field root = doc_root(&r->results->documents[i]), complete;
        if (root.value && doc_field_find(&complete, &root, "result.complete") &&
            !cJSON_IsTrue(complete.value))
            doc_html(r->file,
                     "<p class=\"note\"><bdi>%s</bdi> was interrupted: its figures cover a part "
                     "of the inputs.</p>\n",
                     root.document->file);
    }
}

/* What a run's row begins with: the link leads to the document that it is from. */
static void put_model(struct doc_report *r, const struct doc_scoreboard_run *run, bool named)
{
    size_t document = (size_t)(run->from.document - r->results->documents) + 1;
    doc_html(r->file, "<tr><th scope=\"row\"><bdi>%s</bdi></th>", run->label);
    if (named)
        doc_html(r->file, "<td><bdi>%s</bdi></td>", run->name);
    doc_html(r->file, "<td><bdi>%s</bdi></td><td><bdi>%s</bdi></td>", run->quantisation,
             run->imatrix);
    if (r->results->n > 1)
        doc_html(r->file, "<td class=\"n\" data-value=\"%zu\"><a href=\"#result-%zu\">%zu</a></td>",
                 document, document, document);
    if (run->from.document->kind == DOC_TASKS)
        doc_html(r->file, "<td>%s</td>", run->task);
    doc_report_number(r->file, run->n_bytes / gibibyte, 4);
    doc_report_number(r->file, run->bits_per_weight, 4);
}

static void put_board(struct doc_report *r, const struct doc_scoreboard *board, const char *name)
{
    const char *heads[9 + DOC_N_METRICS] = {"model"};
    size_t n_heads = 1, n;
    bool named = false; /* the runs are of several models, so that each needs its name */
    for (size_t i = 1; i < board->n; i++)
        named |= strcmp(board->runs[i].name, board->runs[0].name) != 0;
    if (named)
        heads[n_heads++] = "name";
    heads[n_heads++] = "quantisation";
    heads[n_heads++] = "imatrix";
    size_t n_words = n_heads;
    if (r->results->n > 1)
        heads[n_heads++] = "result";
    const struct doc_metric *metrics = doc_scoreboard_metrics(&n, board);
    if (board->of_tasks)
        heads[n_heads++] = "task";
    heads[n_heads++] = "size GiB";
    heads[n_heads++] = "bpw";
    for (size_t i = 0; i < n; i++)
        if (metrics[i].on_board)
            heads[n_heads++] = metrics[i].label;
    doc_report_table(r->file, "sortable", name);
    doc_report_heads(r->file, heads, n_words);
    for (size_t k = 0; k < board->n; k++) {
        put_model(r, &board->runs[k], named);
        for (size_t i = 0; i < n; i++)
            if (metrics[i].on_board)
                doc_report_value(r->file, &metrics[i], &board->runs[k].values[i]);
        doc_html(r->file, "</tr>\n");
    }
    doc_report_table_end(r->file);
}

void doc_report_board(struct doc_report *r)
{
    if (r->results->of_texts.n)
        put_board(r, &r->results->of_texts, "Models on a text");
    if (r->results->of_tasks.n)
        put_board(r, &r->results->of_tasks, "Models on choice tasks");
    if (!r->results->of_texts.n && !r->results->of_tasks.n)
        doc_report_missing(r, "No scoreboard: none of the results is of assay kld or perplexity.");
}
