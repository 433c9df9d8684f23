/* assay record: a model's rows into a file, for comparisons without the model. */
#include "cli/commands.h"
#include "cli/perplexity/perplexity_evaluator.h"

/* Where a row's setting lives: recording is assay perplexity with other options. */
#define AT(member) offsetof(struct cli_perplexity_settings, member)

static void record_defaults(void *settings)
{
    struct cli_perplexity_settings *s = settings;
    cli_perplexity_defaults(s);
    s->is_record = true;
    s->record_format = CLI_RECORD_COMPACT;
}

static const struct cli_option options[] = {
    {.type = CLI_HEADING, .help = "Input"},
    {.type = CLI_GROUP, .group = cli_model_file_options, .offset = AT(model)},
    {.type = CLI_GROUP, .group = cli_texts_options, .offset = AT(text)},

    {.type = CLI_HEADING, .help = "Recording"},
    {"-o --output", CLI_TEXT, "FILE", "the file to write; it is FILE.part until it is complete",
     AT(base_file), .required = true, .usual = true},
    {"--format", CLI_CHOICE, "NAME",
     "compact: hidden states and the head, which give exact logits again (default); logits: "
     "llama-perplexity's log-probabilities in 16 bits",
     AT(record_format), .choices = "logits compact"},
    {"--hidden", CLI_CHOICE, "TYPE",
     "f32: hidden states as they were computed (default); f16: half the size, rounded", AT(hidden),
     .choices = "f32 f16"},
    {"--head-by-path", CLI_ON, NULL,
     "store the path of the model instead of its head; the model must stay there",
     AT(head_by_path)},

    {.type = CLI_HEADING, .help = "Evaluation"},
    {.type = CLI_GROUP,
     .group = cli_window_options,
     .offset = AT(windows),
     .help = ", of which the second half is scored (default: 512)"},

    {.type = CLI_GROUP, .group = cli_model_options, .offset = AT(evaluate.load)},
    {"--activations", CLI_REFUSED, "TYPE",
     "the head's products with what is recorded are exact, whoever reads it; assay perplexity "
     "--kl-divergence-base FILE --activations TYPE records rounded predictions",
     .choices = "f32"},

    {.type = CLI_HEADING, .help = "Output"},
    {.type = CLI_GROUP, .group = cli_evaluate_options, .offset = AT(evaluate)},
    {.type = CLI_GROUP, .group = cli_foreign_options},
    {0},
};

static const struct cli_rule rules[] = {
    {"--hidden --head-by-path", CLI_NEEDS, "--format=compact"},
    {0},
};

static enum status run_record(const void *settings, const struct cli_args *args,
                              struct status_why *why)
{
    (void)args;
    struct cli_perplexity_settings s = *(const struct cli_perplexity_settings *)settings;
    cli_text_settle(&s.text);
    enum status status = cli_text_check(&s.text, why);
    const char *single = cli_perplexity_single(&s);
    if (!status && single)
        status = cli_text_check_single(&s.text, single, why);
    if (!status)
        status = cli_window_check(&s.windows, false, why);
    return status ? status : cli_perplexity_run(&s, why);
}

const struct cli_command cli_command_record = {
    .name = "record",
    .usage = "[-m] MODEL -f TEXT -o FILE [options]",
    .summary = "Record a model's predictions, to compare other models with them.",
    .description =
        "The model is evaluated once. The file keeps its hidden state at each scored position,\n"
        "and its head; assay kld --base FILE computes the exact logits from them again.",
    .examples = "assay record f16.gguf -f wiki.test.raw -o base.assay\n"
                "Evaluates a base once; assay kld then needs neither the model nor the text.",
    .options = options,
    .rules = rules,
    .settings_bytes = sizeof(struct cli_perplexity_settings),
    .evaluate = AT(evaluate),
    .defaults = record_defaults,
    .run = run_record,
};
