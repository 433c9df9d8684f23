/* assay table: scoreboards of results, one of models on texts, one of choice tasks. */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/results/results.h"
#include "cli/session/outputs.h"
#include "clients/documents/report/report.h"

struct settings {
    struct cli_list files;
    bool csv, by_metric, svg;
};

static enum status print_tables(struct doc_results *r, const struct settings *s,
                                struct status_why *why)
{
    enum status status = STATUS_OK;
    if (r->of_texts.n)
        status = cli_scoreboard_print(&r->of_texts, s->csv, s->by_metric, why);
    if (r->of_texts.n && r->of_tasks.n)
        putchar('\n');
    if (!status && r->of_tasks.n)
        status = cli_scoreboard_print(&r->of_tasks, s->csv, s->by_metric, why);
    return status;
}

static enum status draw(struct doc_results *r, struct status_why *why)
{
    struct base_file *file = NULL;
    enum status status = base_file_create(&file, "-", NULL, why);
    return status ? status
                  : cli_output_commit(&file, doc_report_size_svg(file, &r->of_texts, why), why);
}

static enum status run_table(const void *opaque, const struct cli_args *args,
                             struct status_why *why)
{
    (void)args;
    const struct settings *s = opaque;
    struct doc_results results = {0};
    enum status status = cli_results_read(&results, &s->files, false, why);
    if (!status)
        status = s->svg ? draw(&results, why) : print_tables(&results, s, why);
    doc_results_free(&results);
    return status;
}

static const struct cli_option options[] = {
    {"--csv", CLI_ON, NULL,
     "CSV with all digits, errors in columns of their own (default: Markdown)",
     offsetof(struct settings, csv)},
    {"--by-metric", CLI_ON, NULL, "every statistic as a row, the models as columns",
     offsetof(struct settings, by_metric)},
    {"--svg", CLI_ON, NULL,
     "a chart instead: divergence, or else perplexity, against size, with the Pareto front",
     offsetof(struct settings, svg)},
    {.type = CLI_OPERANDS,
     .help = "the results",
     .offset = offsetof(struct settings, files),
     .required = true},
    {0},
};

static const struct cli_rule rules[] = {
    {"--svg", CLI_NOT_WITH, "--csv --by-metric", "it is a chart"},
    {0},
};

const struct cli_command cli_command_table = {
    .name = "table",
    .usage = "RESULT.json ... [options]",
    .summary = "Print a scoreboard of results: size, perplexity, divergence, choice tasks.",
    .description =
        "RESULT.json is what --json wrote. Each model has a row: bases first, the others by\n"
        "their mean KL divergence. Results of choice tasks have a table of their own, below.\n"
        "Other documents are left out, and a note says so. What llama-bench printed with -o json\n"
        "or -o jsonl, given beside results, adds the speeds of their files.",
    .examples =
        "assay table *.json\n"
        "All results of a folder in one table; documents that are no results are left out.\n"
        "assay table --svg *.json > sizes.svg\n"
        "Divergence against size, as a chart.\n"
        "assay table kld.json bench.jsonl\n"
        "The same figures beside the speeds that llama-bench -o jsonl measured.",
    .options = options,
    .rules = rules,
    .settings_bytes = sizeof(struct settings),
    .run = run_table,
};
