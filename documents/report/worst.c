/* The tokens of the largest divergence, with the text before them. */
#include <math.h>

#include "documents/report/html.h"
#include "documents/report/report.h"

enum { MOST_SHOWN = 100 };

static void put_token(struct base_file *file, const struct doc_field *token)
{
    doc_html(
        file,
        "<tr><td class=\"text\"><bdi><span class=\"faint\">…</span>%s<mark>%s</mark></bdi></td>",
        doc_field_text(token, "context"), doc_field_text(token, "token"));
    doc_report_number(file, doc_field_real(token, "kld"), 4);
    doc_report_number(file, 100 * exp(doc_field_real(token, "base_logprob")), 3);
    doc_report_number(file, 100 * exp(doc_field_real(token, "logprob")), 3);
    doc_report_number(file, (double)doc_field_count(token, "window"), 0);
    doc_report_number(file, (double)doc_field_count(token, "position"), 0);
    doc_html(file, "</tr>\n");
}

/* Returns whether the run has such tokens. */
static bool put_run(struct doc_report *r, const struct doc_scoreboard_run *run, bool open)
{
    static const char *const heads[] = {
        "text", "KLD", "p of the base, %", "p of the model, %", "window", "position", NULL};
    struct doc_field list, item = {0};
    size_t n;
    if (!doc_run_diverges(run) || !doc_field_find(&list, &run->from, "worst"))
        return false;
    list = doc_field_list(&n, &run->from, "worst");
    if (!n)
        return false;
    doc_html(r->file, "<details");
    if (open)
        doc_html(r->file, " open");
    doc_html(r->file, "><summary><bdi>%s</bdi> (<bdi>%s</bdi>)</summary>\n", run->label,
             run->quantisation);
    doc_report_table(r->file, "sortable", "Tokens of the largest divergence");
    doc_report_heads(r->file, heads, 1);
    while (doc_field_next(&list, &item) && item.index < MOST_SHOWN)
        put_token(r->file, &item);
    doc_report_table_end(r->file);
    if (n > MOST_SHOWN)
        doc_html(r->file, "<p class=\"note\">%zu of %zu are shown.</p>\n", (size_t)MOST_SHOWN, n);
    doc_html(r->file, "</details>\n");
    return true;
}

void doc_report_worst(struct doc_report *r)
{
    const struct doc_scoreboard *board = &r->results->of_texts;
    bool any = false;
    for (size_t i = 0; i < board->n; i++)
        any |= put_run(r, &board->runs[i], !any);
    if (!any)
        doc_report_missing(
            r, "No tokens: none of the results is of assay kld with --worst N, which adds them.");
}
