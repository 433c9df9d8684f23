/* assay record: a model's rows into a file, for comparisons without the model. */
#include "cli/commands.h"
#include "cli/perplexity/evaluation.h"
#include "cli/session/outputs.h"

/* Where a row's setting lives: recording is assay perplexity with other options. */
#define AT(member) offsetof(struct cli_perplexity, member)

static void record_defaults(void *settings)
{
    struct cli_perplexity *s = settings;
    cli_perplexity_defaults(s);
    s->record_format = CLI_RECORD_COMPACT;
}

static const struct cli_option record_table[] = {
    {.type = CLI_HEADING, .help = "Input"},
    {.type = CLI_GROUP, .group = cli_model_file_table, .offset = AT(model)},
    {.type = CLI_GROUP, .group = cli_text_table, .offset = AT(text)},

    {.type = CLI_HEADING, .help = "Recording"},
    {.names = "-o --output",
     CLI_TEXT,
     "FILE",
     "the file to be recorded; until it is whole it is FILE.part",
     AT(base_file),
     .required = true},
    {.names = "--format",
     CLI_CHOICE,
     "NAME",
     "compact: hidden states and the head, which give exact logits again (default); logits: "
     "llama-perplexity's log-probabilities in 16 bits",
     AT(record_format),
     .choices = "logits compact"},
    {.names = "--hidden",
     CLI_CHOICE,
     "TYPE",
     "f32: hidden states as they were computed (default); f16: half the size, rounded",
     AT(hidden),
     .choices = "f32 f16"},
    {.names = "--head-by-path",
     CLI_ON,
     NULL,
     "do not copy the head but remember the path of the model, which must then still be there",
     AT(head_by_path)},
    {.type = CLI_GROUP, .group = cli_force_table, .offset = AT(force)},

    {.type = CLI_HEADING, .help = "Evaluation"},
    {.type = CLI_GROUP,
     .group = cli_window_table,
     .offset = AT(windows),
     .help = ", of which the second half is scored (default: 512)"},

    {.type = CLI_GROUP, .group = cli_model_table, .offset = AT(load)},

    {.type = CLI_HEADING, .help = "Output"},
    {.type = CLI_GROUP, .group = cli_state_table, .offset = AT(state_file)},
    {.type = CLI_GROUP, .group = cli_output_table, .offset = AT(output)},

    {.type = CLI_GROUP, .group = cli_machine_table, .offset = AT(machine)},
    {.type = CLI_GROUP, .group = cli_foreign_table},
    {0},
};

/* No output may be a file that is read, or another output. */
static enum status check_outputs(const struct cli_perplexity *s, struct status_why *why)
{
    const struct cli_named_file outputs[] = {
        {"-o", s->base_file}, {"--json", s->output.json_file}, {"--state", s->state_file}};
    const struct cli_named_file inputs[] = {
        {"-m", s->model}, {"-f", s->text.text_file}, {"-bf", s->text.binary_file}};
    return cli_outputs_check(outputs, sizeof outputs / sizeof *outputs, inputs,
                             sizeof inputs / sizeof *inputs, why);
}

static enum status run_record(const void *settings, const struct cli_args *args,
                              struct status_why *why)
{
    (void)args;
    const struct cli_perplexity *s = settings;
    enum status status = cli_text_check(&s->text, why);
    if (status == STATUS_OK)
        status = cli_window_check(&s->windows, why);
    bool about_hidden = s->head_by_path || s->hidden != EVAL_COMPACT_F32;
    if (status == STATUS_OK && s->record_format == CLI_RECORD_LOGITS && about_hidden)
        status = status_fail(why, STATUS_USAGE,
                             "--hidden and --head-by-path go with --format compact only");
    if (status == STATUS_OK)
        status = check_outputs(s, why);
    if (status == STATUS_OK)
        status = cli_model_check(&s->load, why);
    return status == STATUS_OK ? cli_evaluation_run(s, why) : status;
}

const struct cli_command cli_command_record = {
    .name = "record",
    .usage = "-m MODEL -f TEXT -o FILE [options]",
    .summary = "Record a model's predictions, to compare other models with them.",
    .description =
        "Evaluates the model once and keeps, for each scored position, its hidden state, and the\n"
        "head of the model. assay kld --base FILE computes the exact logits from them again.",
    .table = record_table,
    .settings_bytes = sizeof(struct cli_perplexity),
    .defaults = record_defaults,
    .run = run_record,
};
