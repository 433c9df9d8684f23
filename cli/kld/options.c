/* The options of assay kld. */
#include "cli/kld/options.h"

/* Where a row's setting lives. */
#define AT(member) offsetof(struct cli_kld_settings, member)

void cli_kld_defaults(void *settings)
{
    struct cli_kld_settings *s = settings;
    *s = (struct cli_kld_settings){0};
    cli_window_defaults(&s->windows);
    cli_model_defaults(&s->load);
    cli_machine_defaults(&s->evaluate.machine);
}

const struct cli_option cli_kld_options[] = {
    {.type = CLI_HEADING, .help = "Input"},
    {"-m --model", CLI_EACH, "FILE",
     "a model to compare with the base: a GGUF file, any part of a split one; again for more, "
     "which share the base's evaluation",
     AT(models), .required = true},
    {"--base", CLI_TEXT, "FILE",
     "what is taken as the truth: a model, or a file that assay record, assay perplexity "
     "--kl-divergence-base or llama-perplexity wrote, which needs no -f",
     AT(base), .required = true},
    {.type = CLI_GROUP, .group = cli_text_options, .offset = AT(text)},

    {.type = CLI_HEADING, .help = "Evaluation"},
    {.type = CLI_GROUP,
     .group = cli_window_options,
     .offset = AT(windows),
     .help = ", of which the second half is scored (default: 512, or the base file's)"},
    {.type = CLI_GROUP, .group = cli_chunk_from_options, .offset = AT(windows)},
    {"--js", CLI_ON, NULL,
     "also the Jensen-Shannon divergence, which takes a second pass over the vocabulary", AT(js)},
    {"--llama-compat", CLI_ON, NULL,
     "with a base-logits file: leave out tokens of the base with ln p <= -16, and the summary of "
     "fewer than 100 tokens, as llama-perplexity does",
     AT(llama_compat)},

    {.type = CLI_GROUP, .group = cli_model_options, .offset = AT(load)},

    {.type = CLI_HEADING, .help = "Output"},
    {.type = CLI_GROUP,
     .group = cli_per_token_options,
     .offset = AT(per_token_file),
     .help = " and model"},
    {.type = CLI_GROUP, .group = cli_divergence_options, .offset = AT(divergence)},
    {.type = CLI_GROUP, .group = cli_evaluate_options, .offset = AT(evaluate)},
    {.type = CLI_GROUP, .group = cli_foreign_options},
    {0},
};
