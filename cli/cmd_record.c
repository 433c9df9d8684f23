/* assay record: a model's rows into a file, for comparisons without the model. */
#include "cli/commands.h"
#include "cli/evaluation.h"
#include "cli/outputs.h"

/* Where a row's setting lives: recording is assay perplexity with other options. */
#define AT(member) offsetof(struct cli_perplexity, member)

enum { ANY = INT32_MAX };

static void record_defaults(void *settings)
{
    struct cli_perplexity *s = settings;
    cli_perplexity_defaults(s);
    s->record_format = CLI_RECORD_COMPACT;
}

static const struct cli_option record_table[] = {
    {.type = CLI_HEADING, .help = "Input"},
    {.names = "-m --model",
     CLI_TEXT,
     "FILE",
     "the model: a GGUF file, any part of a split one",
     AT(model),
     .env = "LLAMA_ARG_MODEL",
     .required = true},
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
    {.names = "--force", CLI_ON, NULL, "the file may replace one", AT(force)},

    {.type = CLI_HEADING, .help = "Evaluation"},
    {.names = "-c --ctx-size",
     CLI_COUNT,
     "N",
     "tokens per window, of which the second half is scored (default: 512)",
     AT(n_ctx),
     1,
     ANY,
     .env = "LLAMA_ARG_CTX_SIZE"},
    {.names = "--chunks",
     CLI_COUNT,
     "N",
     "record the first N windows only (default: -1, all)",
     AT(n_chunks),
     -1,
     ANY},

    {.type = CLI_GROUP, .group = cli_model_table, .offset = AT(load)},

    {.type = CLI_HEADING, .help = "Output"},
    {.names = "--state",
     CLI_TEXT,
     "FILE",
     "keep a journal of what is finished; the same command goes on where a killed run stopped",
     AT(state_file)},
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
    if (status == STATUS_OK && s->n_chunks == 0)
        status = status_fail(why, STATUS_USAGE, "--chunks: 0 leaves nothing to record; -1 is all");
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
