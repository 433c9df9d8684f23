/* assay plan: another command's options, and the plan as the host of its run. */
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/options/common.h"
#include "cli/plan/plan.h"
#include "cli/process/say.h"

enum { MAX_SECONDS = 3600 };

/** Those that evaluate; the first is what options without a command are for. */
static const struct cli_command *const planned[] = {
    &cli_command_perplexity, &cli_command_record, &cli_command_kld,   &cli_command_best,
    &cli_command_sweep,      &cli_command_check,  &cli_command_score, &cli_command_explain,
};

static enum status find_command(const struct cli_command **out, const struct cli_args *args,
                                struct status_why *why)
{
    const char *name = args->n_rest ? args->rest[0] : "";
    *out = *name == '-' ? planned[0] : NULL;
    for (size_t i = 0; i < sizeof planned / sizeof *planned && !*out; i++)
        if (strcmp(planned[i]->name, name) == 0)
            *out = planned[i];
    if (*out)
        return STATUS_OK;
    if (strcmp(name, "imatrix") == 0)
        return status_fail(why, STATUS_USAGE,
                           "assay imatrix --dry-run plans that command, with its other options");
    return status_fail(why, STATUS_USAGE,
                       "%s%s%s: expected a command that evaluates: perplexity, record, kld, best, "
                       "sweep, check, score or explain, with its options",
                       *name ? "'" : "", *name ? name : "the command is missing",
                       *name ? "' cannot be planned" : "");
}

/** Parse the command's words as the command does; then it runs for this host. */
static enum status plan_command(const struct cli_command *command, int argc, char **argv,
                                struct cli_plan *plan, void *settings, struct status_why *why)
{
    struct cli_args args;
    enum status status = cli_args_parse(command, argc, argv, settings, &args, why);
    if (status)
        return status;
    if (args.help) {
        cli_args_help(command);
        return STATUS_OK;
    }
    cli_be_quiet(args.quiet || cli_is_quiet());
    cli_print_notes(args.notes);
    struct cli_evaluate_settings *evaluate = (void *)((char *)settings + command->evaluate);
    evaluate->host = &plan->host;
    status = command->run(settings, &args, why);
    if (!status && !plan->made)
        status =
            status_fail(why, STATUS_USAGE,
                        "these options of assay %s evaluate no model here: there is nothing to "
                        "plan",
                        command->name);
    return status;
}

static enum status run_plan(const void *own, const struct cli_args *args, struct status_why *why)
{
    const struct cli_command *command;
    enum status status = find_command(&command, args, why);
    if (status)
        return status;
    /* Options without a command have its name before them. */
    int without = args->rest[0][0] == '-';
    struct cli_plan plan;
    cli_plan_make(&plan, own);
    void *settings = calloc(1, command->settings_bytes);
    if (!settings)
        return status_fail(why, STATUS_MEMORY, "out of memory");
    command->defaults(settings);
    status =
        plan_command(command, args->n_rest + without, args->rest - without, &plan, settings, why);
    cli_args_release(command, settings);
    free(settings);
    return status;
}

#define AT(member) offsetof(struct cli_plan_settings, member)

static void defaults(void *settings)
{
    *(struct cli_plan_settings *)settings = cli_plan_defaults;
}

static const struct cli_option options[] = {
    {.type = CLI_HEADING, .help = "Options, before the command"},
    {"--json", CLI_TEXT, "FILE",
     "write the plan as JSON; - is standard output, and the lines then go to standard error",
     AT(json_file)},
    {.type = CLI_GROUP, .group = cli_force_options, .offset = AT(force)},
    {"--seconds", CLI_COUNT, "N",
     "let the trial take about N seconds (default: 8); a batch of a large model takes longer",
     AT(seconds), 1, MAX_SECONDS},
    {"-q --quiet", CLI_QUIET, NULL, "nothing but errors on standard error"},
    {0},
};

const struct cli_command cli_command_plan = {
    .name = "plan",
    .usage = "[options] COMMAND [options of the command]",
    .summary = "Say what a run would take, before it is made.",
    .description =
        "The command opens what the run would open, counts tokens, windows and passes over the\n"
        "weights, and evaluates for some seconds. Then it says how much time, memory and disk\n"
        "the run would take, what limits it, and what cheaper runs would take. Nothing of the\n"
        "run is written. COMMAND is perplexity (also with tasks), record, kld, best, sweep,\n"
        "check, score or explain; --dry-run among their options does the same.",
    .examples =
        "assay plan kld q4.gguf --base f16.gguf -f wiki.test.raw\n"
        "What that comparison would take.\n"
        "assay plan --json plan.json sweep --base f16.gguf --from q4.gguf -f wiki.test.raw\n"
        "What that sweep would take of time, memory and disk, and what cheaper ones would take.",
    .options = options,
    .settings_bytes = sizeof(struct cli_plan_settings),
    .takes_command = true,
    .defaults = defaults,
    .run = run_plan,
};
