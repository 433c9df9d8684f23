/* The tokens of the largest divergence, with the text before them. */
#include <math.h>

#include "cli/report/html.h"
#include "cli/report/report.h"

enum { MOST_SHOWN = 100 };

static void put_token(struct base_file *file, const struct cli_field *token)
{
    cli_html(
        file,
        "<tr><td class=\"text\"><bdi><span class=\"faint\">…</span>%s<mark>%s</mark></bdi></td>",
        cli_field_text(token, "context"), cli_field_text(token, "token"));
    cli_report_number(file, cli_field_real(token, "kld"), 4);
    cli_report_number(file, 100 * exp(cli_field_real(token, "base_logprob")), 3);
    cli_report_number(file, 100 * exp(cli_field_real(token, "logprob")), 3);
    cli_report_number(file, (double)cli_field_count(token, "window"), 0);
    cli_report_number(file, (double)cli_field_count(token, "position"), 0);
    cli_html(file, "</tr>\n");
}

/* Returns whether the run has such tokens. */
static bool put_run(struct cli_report *r, const struct cli_scoreboard_run *run, bool open)
{
    static const char *const heads[] = {
        "text", "KLD", "p of the base, %", "p of the model, %", "window", "position", NULL};
    struct cli_field list, item = {0};
    size_t n;
    if (!cli_run_diverges(run) || !cli_field_find(&list, &run->from, "worst"))
        return false;
    list = cli_field_list(&n, &run->from, "worst");
    if (!n)
        return false;
    cli_html(r->file, "<details");
    if (open)
        cli_html(r->file, " open");
    cli_html(r->file, "><summary><bdi>%s</bdi> (<bdi>%s</bdi>)</summary>\n", run->file,
             run->quantisation);
    cli_report_table(r->file, "sortable", "Tokens of the largest divergence");
    cli_report_heads(r->file, heads, 1);
    while (cli_field_next(&list, &item) && item.index < MOST_SHOWN)
        put_token(r->file, &item);
    cli_report_table_end(r->file);
    if (n > MOST_SHOWN)
        cli_html(r->file, "<p class=\"note\">%zu of %zu are shown.</p>\n", (size_t)MOST_SHOWN, n);
    cli_html(r->file, "</details>\n");
    return true;
}

void cli_report_worst(struct cli_report *r)
{
    const struct cli_scoreboard *board = &r->results->of_texts;
    bool any = false;
    for (size_t i = 0; i < board->n; i++)
        any |= put_run(r, &board->runs[i], !any);
    if (!any)
        cli_report_missing(
            r, "No tokens: none of the results is of assay kld with --worst N, which adds them.");
}
