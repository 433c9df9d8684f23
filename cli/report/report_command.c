/* assay report: a page of results that a browser shows. */

#include "cli/commands.h"
#include "cli/options/common.h"
#include "cli/results/results.h"
#include "cli/session/outputs.h"
#include "clients/documents/report/report.h"

enum { MOST_RESAMPLES = 1000000, MOST_CONTEXT = 1 << 30 };

struct settings {
    struct cli_list files;
    const char *output;
    bool force;
    int64_t n_resamples, seed, n_context;
};

static void defaults(void *settings)
{
    *(struct settings *)settings = (struct settings){.n_resamples = 10000, .seed = 1};
}

static enum status run_report(const void *settings, const struct cli_args *args,
                              struct status_why *why)
{
    (void)args;
    const struct settings *s = settings;
    struct doc_results results = {0};
    struct doc_report report = {.results = &results,
                                .n_resamples = s->n_resamples,
                                .seed = s->seed,
                                .n_context = s->n_context};
    const struct cli_named_file output = {"-o", s->output};
    enum status status = cli_outputs_check_list(&output, 1, "a result", &s->files, why);
    if (!status)
        status = cli_results_read(&results, &s->files, true, why);
    if (!status)
        status = cli_output_create(&report.file, s->output, s->force ? NULL : BASE_PAGE, why);
    if (!status)
        status = cli_output_commit(&report.file, doc_report_write(&report, why), why);
    doc_results_free(&results);
    return status;
}

#define AT(member) offsetof(struct settings, member)

static const struct cli_option options[] = {
    {"-o --output", CLI_TEXT, "FILE", "the page to write; - is standard output", AT(output),
     .required = true},
    {.type = CLI_GROUP, .group = cli_force_options, .offset = AT(force)},
    {"--resamples", CLI_COUNT, "N", "resamples of the paired tests (default: 10000)",
     AT(n_resamples), 1, MOST_RESAMPLES},
    {"--seed", CLI_COUNT, "N", "seed of their generator (default: 1)", AT(seed), 0, UINT32_MAX},
    {"--context", CLI_COUNT, "N",
     "add to the sizes a cache of keys and values for N tokens, in F16 or the types of -ctk and "
     "-ctv (default: weights alone)",
     AT(n_context), 1, MOST_CONTEXT},
    {.type = CLI_OPERANDS, .help = "the results", .offset = AT(files), .required = true},
    {0},
};

const struct cli_command cli_command_report = {
    .name = "report",
    .usage = "RESULT.json ... -o report.html [options]",
    .summary = "Write a page of results for a browser: scoreboard, charts, worst tokens, tests.",
    .description =
        "RESULT.json is what --json of perplexity (also of choice tasks), kld, best or sweep\n"
        "wrote, or what info --json says of an importance matrix. The page is one file that\n"
        "loads nothing. It says what the results do not have, and which option adds it.\n"
        "What llama-bench printed with -o json or -o jsonl, given beside results, adds speeds\n"
        "and the divergence against them.",
    .examples = "assay report *.json -o report.html\n"
                "Results as a page, with charts, the worst tokens and paired tests.",
    .options = options,
    .settings_bytes = sizeof(struct settings),
    .defaults = defaults,
    .run = run_report,
};
