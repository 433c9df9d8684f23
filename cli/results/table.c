/* assay table: scoreboards of results, one of models on texts, one of choice tasks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/output/say.h"
#include "cli/results/scoreboard.h"

struct settings {
    struct cli_list files;
    bool csv, by_metric;
};

/* A table of models on texts, and one of choice tasks. */
struct boards {
    struct cli_scoreboard of_texts, of_tasks;
};

static struct cli_scoreboard *board_of(struct boards *boards, const struct cli_document *result)
{
    return result->kind == CLI_DOCUMENT_TASKS ? &boards->of_tasks : &boards->of_texts;
}

/* The first result before this one that stands in the same table, on tasks of the same kind. */
static struct cli_document *first_like(struct cli_document *results, size_t i)
{
    bool tasks = results[i].kind == CLI_DOCUMENT_TASKS;
    struct cli_field own = cli_document_root(&results[i]);
    for (size_t k = 0; k < i; k++) {
        struct cli_field root = cli_document_root(&results[k]);
        if (root.value && (results[k].kind == CLI_DOCUMENT_TASKS) == tasks &&
            (!tasks || strcmp(cli_field_text(&root, "kind"), cli_field_text(&own, "kind")) == 0))
            return &results[k];
    }
    return &results[i];
}

/* Rows of other texts or windows may stand beside each other, but not unsaid. */
static enum status note_differences(struct cli_document *first, struct cli_document *other,
                                    struct status_why *why)
{
    struct cli_field a = cli_document_root(first), b = cli_document_root(other);
    struct status_why difference = {""};
    const char *paths = first->kind == CLI_DOCUMENT_TASKS
                            ? "result.n_tasks"
                            : "tokens.sha256 windows.n_tokens result.n_windows";
    enum status status = cli_fields_same_text(&a, &b, &difference);
    if (!status)
        status = cli_fields_equal(&a, &b, paths, NULL, &difference);
    if (status != STATUS_USAGE)
        return status ? status_fail(why, status, "%s", difference.text) : STATUS_OK;
    cli_say("assay: note: %s\n", difference.text);
    return STATUS_OK;
}

static enum status read_all(struct boards *boards, struct cli_document *results,
                            const struct cli_list *files, struct status_why *why)
{
    for (size_t i = 0; i < files->n; i++) {
        enum status status = cli_document_read(&results[i], files->items[i], why);
        if (results[i].is_other) {
            cli_say("assay: note: left out: %s\n", why->text);
            continue;
        }
        if (!status)
            status = cli_scoreboard_add(board_of(boards, &results[i]), &results[i], why);
        if (!status)
            status = note_differences(first_like(results, i), &results[i], why);
        if (status)
            return status;
    }
    if (!boards->of_texts.n && !boards->of_tasks.n)
        return status_fail(why, STATUS_USAGE,
                           "none of %zu file%s is a result of a model: there is no table", files->n,
                           status_plural(files->n));
    return STATUS_OK;
}

static enum status print_all(struct boards *boards, const struct settings *s,
                             struct status_why *why)
{
    enum status status = STATUS_OK;
    if (boards->of_texts.n)
        status = cli_scoreboard_print(&boards->of_texts, s->csv, s->by_metric, why);
    if (boards->of_texts.n && boards->of_tasks.n)
        putchar('\n');
    if (!status && boards->of_tasks.n)
        status = cli_scoreboard_print(&boards->of_tasks, s->csv, s->by_metric, why);
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
    struct boards boards = {0};
    enum status status = read_all(&boards, results, &s->files, why);
    if (!status)
        status = print_all(&boards, s, why);
    cli_scoreboard_free(&boards.of_texts);
    cli_scoreboard_free(&boards.of_tasks);
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
    .summary = "Print a scoreboard of results: size, perplexity, divergence, choice tasks.",
    .description = "Takes what --json wrote: a row for each model, bases first, then by mean KL "
                   "divergence. Results of\nchoice tasks have a table of their own, below. Other "
                   "documents are left out, with a note.",
    .options = options,
    .settings_bytes = sizeof(struct settings),
    .run = run_table,
};
