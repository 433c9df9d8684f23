/* The head of the page, the scoreboard, and what all parts write tables with. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text/utf8.h"
#include "cli/output/printable.h"
#include "cli/report/html.h"
#include "cli/report/report.h"

enum { NAME_CHARACTERS = 24 };
static const double gibibyte = 1073741824.0;

const char *cli_run_name(char out[CLI_RUN_NAME], const struct cli_scoreboard *board,
                         const struct cli_scoreboard_run *run)
{
    const char *name = run->quantisation;
    for (size_t i = 0; i < board->n; i++)
        if (strcmp(board->runs[i].quantisation, name) == 0 &&
            strcmp(board->runs[i].file, run->file) != 0)
            name = run->file;
    size_t n = strlen(name), used = 0, characters = 0;
    while (used < n && characters++ < NAME_CHARACTERS) {
        size_t bytes = base_utf8_decode(name + used, n - used, NULL);
        used += bytes ? bytes : 1;
    }
    snprintf(out, CLI_RUN_NAME, "%.*s%s", (int)used, name, used < n ? "…" : "");
    return out;
}

bool cli_run_diverges(const struct cli_scoreboard_run *run)
{
    return run->values[CLI_METRIC_KLD].known;
}

static const char *shown(char out[CLI_METRIC_TEXT], double value, int n_decimals)
{
    if (fabs(value) < 1e15)
        snprintf(out, CLI_METRIC_TEXT, "%.*f", n_decimals, cli_shown(value, n_decimals));
    else
        snprintf(out, CLI_METRIC_TEXT, "%g", cli_unsigned_nan(value));
    return out;
}

void cli_report_number(struct base_file *file, double value, int n_decimals)
{
    char text[CLI_METRIC_TEXT];
    cli_html(file, "<td class=\"n\" data-value=\"%.17g\">%s</td>", value,
             shown(text, value, n_decimals));
}

void cli_report_value(struct base_file *file, const struct cli_metric *m,
                      const struct cli_metric_value *v)
{
    char text[CLI_METRIC_TEXT];
    if (!v->known || !m->error) {
        if (v->known)
            cli_report_number(file, m->scale * v->value, m->n_decimals);
        else
            cli_html(file, "<td class=\"n\" data-value=\"nan\">-</td>");
        return;
    }
    cli_html(file, "<td class=\"n\" data-value=\"%.17g\">%s", m->scale * v->value,
             shown(text, m->scale * v->value, m->n_decimals));
    cli_html(file, " <span class=\"error\">± %s</span></td>",
             shown(text, m->scale * v->error, m->n_decimals));
}

void cli_report_table(struct base_file *file, const char *classes, const char *name)
{
    cli_html(file,
             "<div class=\"wide\" role=\"region\" aria-label=\"%s\" tabindex=\"0\">\n"
             "<table class=\"%s\">\n<caption>%s</caption>\n",
             name, classes, name);
}

void cli_report_table_end(struct base_file *file)
{
    cli_html(file, "</tbody>\n</table>\n</div>\n");
}

void cli_report_heads(struct base_file *file, const char *const *heads, size_t n_words)
{
    cli_html(file, "<thead><tr>");
    for (size_t i = 0; heads[i]; i++)
        cli_html(file, "<th scope=\"col\" class=\"%s\">%s</th>", i < n_words ? "w" : "n", heads[i]);
    cli_html(file, "</tr></thead>\n<tbody>\n");
}

void cli_report_missing(struct cli_report *r, const char *sentence)
{
    cli_html(r->file, "<p class=\"missing\">%s</p>\n", sentence);
}

void cli_report_summary(struct cli_report *r)
{
    size_t n_results = 0;
    const char *swept = "";
    for (size_t i = 0; i < r->results->n; i++) {
        struct cli_field root = cli_document_root(&r->results->documents[i]);
        n_results += root.value != NULL;
        if (root.value && root.document->kind == CLI_DOCUMENT_SWEEP)
            swept = cli_field_text(&root, "base.name");
    }
    const struct cli_scoreboard *board =
        r->results->of_texts.n ? &r->results->of_texts : &r->results->of_tasks;
    cli_html(r->file, "<p><strong><bdi>%s</bdi></strong>: %zu result%s of assay.</p>\n",
             board->n ? board->runs[0].name : swept, n_results, status_plural(n_results));
    for (size_t i = 0; i < r->results->n_notes; i++)
        cli_html(r->file, "<p class=\"note\"><bdi>%s</bdi></p>\n", r->results->notes[i].text);
    for (size_t i = 0; i < r->results->n; i++) {
        struct cli_field root = cli_document_root(&r->results->documents[i]), complete;
        if (root.value && cli_field_find(&complete, &root, "result.complete") &&
            !cJSON_IsTrue(complete.value))
            cli_html(r->file,
                     "<p class=\"note\"><bdi>%s</bdi> was interrupted: its figures cover a part "
                     "of the inputs.</p>\n",
                     root.document->file);
    }
}

/* What a run's row begins with: the link leads to the document that it is from. */
static void put_model(struct cli_report *r, const struct cli_scoreboard_run *run, bool named)
{
    size_t document = (size_t)(run->from.document - r->results->documents) + 1;
    cli_html(r->file, "<tr><th scope=\"row\"><bdi>%s</bdi></th>", run->file);
    if (named)
        cli_html(r->file, "<td><bdi>%s</bdi></td>", run->name);
    cli_html(r->file, "<td><bdi>%s</bdi></td><td><bdi>%s</bdi></td>", run->quantisation,
             run->imatrix);
    if (r->results->n > 1)
        cli_html(r->file, "<td class=\"n\" data-value=\"%zu\"><a href=\"#result-%zu\">%zu</a></td>",
                 document, document, document);
    if (run->from.document->kind == CLI_DOCUMENT_TASKS)
        cli_html(r->file, "<td>%s</td>", run->task);
    cli_report_number(r->file, run->n_bytes / gibibyte, 4);
    cli_report_number(r->file, run->bits_per_weight, 4);
}

static void put_board(struct cli_report *r, const struct cli_scoreboard *board, const char *name)
{
    const char *heads[9 + CLI_N_METRICS] = {"file"};
    size_t n_heads = 1, n;
    bool named = false; /* the runs are of several models, so that each needs its name */
    for (size_t i = 1; i < board->n; i++)
        named |= strcmp(board->runs[i].name, board->runs[0].name) != 0;
    if (named)
        heads[n_heads++] = "model";
    heads[n_heads++] = "quantisation";
    heads[n_heads++] = "imatrix";
    size_t n_words = n_heads;
    if (r->results->n > 1)
        heads[n_heads++] = "result";
    const struct cli_metric *metrics = cli_scoreboard_metrics(&n, board);
    if (board->of_tasks)
        heads[n_heads++] = "task";
    heads[n_heads++] = "size GiB";
    heads[n_heads++] = "bpw";
    for (size_t i = 0; i < n; i++)
        if (metrics[i].on_board)
            heads[n_heads++] = metrics[i].label;
    cli_report_table(r->file, "sortable", name);
    cli_report_heads(r->file, heads, n_words);
    for (size_t k = 0; k < board->n; k++) {
        put_model(r, &board->runs[k], named);
        for (size_t i = 0; i < n; i++)
            if (metrics[i].on_board)
                cli_report_value(r->file, &metrics[i], &board->runs[k].values[i]);
        cli_html(r->file, "</tr>\n");
    }
    cli_report_table_end(r->file);
}

void cli_report_board(struct cli_report *r)
{
    if (r->results->of_texts.n)
        put_board(r, &r->results->of_texts, "Models on a text");
    if (r->results->of_tasks.n)
        put_board(r, &r->results->of_tasks, "Models on choice tasks");
    if (!r->results->of_texts.n && !r->results->of_tasks.n)
        cli_report_missing(r, "No scoreboard: none of the results is of assay kld or perplexity.");
}
