/* assay card: the block that publishers put on the page of a model. */
#include "clients/documents/card/card.h"
#include "cli/commands.h"
#include "cli/options/common.h"
#include "cli/process/say.h"
#include "cli/results/results.h"
#include "cli/session/outputs.h"
#include "clients/documents/report/report.h"

struct settings {
    struct cli_list files;
    const char *output, *svg;
    bool force;
};

static void defaults(void *settings)
{
    *(struct settings *)settings = (struct settings){.output = "-"};
}

/* What a card has no place for. */
static void say_left_out(const struct doc_results *r)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->documents[i].json.root && r->documents[i].kind == DOC_TASKS)
            cli_say("assay: note: %s is left out: a card has no choice tasks; assay table has\n",
                    r->documents[i].json.file);
}

static enum status run_card(const void *opaque, const struct cli_args *args, struct status_why *why)
{
    (void)args;
    const struct settings *s = opaque;
    struct doc_results results = {0};
    struct base_file *file = NULL, *svg = NULL;
    const struct cli_named_file outputs[] = {{"-o", s->output}, {"--svg", s->svg}};
    enum status status =
        cli_outputs_check_list(outputs, s->svg ? 2 : 1, "a result", &s->files, why);
    if (!status)
        status = cli_results_read(&results, &s->files, false, why);
    if (!status) {
        say_left_out(&results);
        status = cli_output_create(&svg, s->svg, s->force ? NULL : BASE_CHART, why);
    }
    if (!status)
        status = cli_output_create(&file, s->output, s->force ? NULL : BASE_CARD, why);
    if (!status)
        status = cli_output_commit(&file, doc_card_write(file, &results, s->svg, why), why);
    if (svg)
        status = cli_output_commit(
            &svg, status ? status : doc_report_size_svg(svg, &results.of_texts, why), why);
    doc_results_free(&results);
    return status;
}

#define AT(member) offsetof(struct settings, member)

static const struct cli_option options[] = {
    {"-o --output", CLI_TEXT, "FILE", "the Markdown (default: -, standard output)", AT(output)},
    {"--svg", CLI_TEXT, "FILE",
     "also a chart, divergence or else perplexity against size, which the Markdown shows", AT(svg)},
    {.type = CLI_GROUP, .group = cli_force_options, .offset = AT(force)},
    {.type = CLI_OPERANDS, .help = "the results", .offset = AT(files), .required = true},
    {0},
};

const struct cli_command cli_command_card = {
    .name = "card",
    .usage = "RESULT.json ... [options]",
    .summary = "Print the block for a model's page: figures, text, types and command, in Markdown.",
    .description =
        "RESULT.json is what --json of kld, best or perplexity wrote. For each result the block\n"
        "has a table of sizes, perplexities and divergences; a line for each file that says\n"
        "what its size is worth (not over a rounded cache); the text with its hash (and its name, "
        "where published figures\n"
        "refer to it); and the parent models and importance matrices that the files name.\n"
        "Folded up are the types of the tensors, and the command that gives the figures again.\n"
        "What llama-bench printed with -o json or -o jsonl, given beside results, adds speeds.",
    .examples =
        "assay card kld.json -o card.md --svg kld.svg\n"
        "The block for a model's page: its figures, the text and the command, with a chart.",
    .options = options,
    .settings_bytes = sizeof(struct settings),
    .defaults = defaults,
    .run = run_card,
};
