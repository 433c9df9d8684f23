/* assay table: a scoreboard of results. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/commands.h"
#include "cli/results/scoreboard.h"

struct settings {
    struct cli_list files;
    bool csv, by_metric;
};

/* Rows of other texts or windows may stand beside each other, but not unsaid. */
static enum status note_differences(struct cli_document *first, struct cli_document *other,
                                    struct status_why *why)
{
    struct cli_field a = cli_document_root(first), b = cli_document_root(other);
    struct status_why difference = {""};
    enum status status = cli_fields_same_text(&a, &b, &difference);
    if (!status)
        status = cli_fields_equal(&a, &b, "tokens.sha256 windows.n_tokens result.n_windows", NULL,
                                  &difference);
    if (status != STATUS_USAGE)
        return status ? status_fail(why, status, "%s", difference.text) : STATUS_OK;
    fprintf(stderr, "assay: note: %s\n", difference.text);
    return STATUS_OK;
}

static enum status read_all(struct cli_scoreboard *table, struct cli_document *results,
                            const struct cli_list *files, struct status_why *why)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < files->n && !status; i++) {
        status = cli_document_read(&results[i], files->items[i], why);
        if (!status)
            status = cli_scoreboard_add(table, &results[i], why);
        if (!status)
            status = note_differences(&results[0], &results[i], why);
    }
    return status;
}

static enum status run_table(const void *opaque, const struct cli_args *args,
                             struct status_why *why)
{
    (void)args;
    const struct settings *s = opaque;
    struct cli_document *results = calloc(s->files.n, sizeof *results);
    if (!results)
        return status_fail(why, STATUS_MEMORY, "no memory for %zu results", s->files.n);
    struct cli_scoreboard table = {0};
    enum status status = read_all(&table, results, &s->files, why);
    if (!status) {
        cli_scoreboard_sort(&table);
        status = cli_scoreboard_print(&table, s->csv, s->by_metric, why);
    }
    cli_scoreboard_free(&table);
    for (size_t i = 0; i < s->files.n; i++)
        cli_document_free(&results[i]);
    free(results);
    return status;
}

static const struct cli_option options[] = {
    {"--csv", CLI_ON, NULL,
     "CSV with all digits, errors in columns of their own (default: Markdown)",
     offsetof(struct settings, csv)},
    {"--by-metric", CLI_ON, NULL, "every statistic as a row, the runs as columns",
     offsetof(struct settings, by_metric)},
    {.type = CLI_OPERANDS,
     .help = "the results",
     .offset = offsetof(struct settings, files),
     .required = true},
    {0},
};

const struct cli_command cli_command_table = {
    .name = "table",
    .usage = "RESULT.json ... [options]",
    .summary = "Print a scoreboard of results: size, perplexity, divergence.",
    .description = "Takes what --json wrote, of assay kld and of perplexities: a row for each "
                   "model, sorted by mean\nKL divergence, bases first.",
    .options = options,
    .settings_bytes = sizeof(struct settings),
    .run = run_table,
};
