/* The options of assay kld. */
#include "cli/options_kld.h"

/* Where a row's setting lives. */
#define AT(member) offsetof(struct cli_kld, member)

enum { ANY = INT32_MAX, MOST_WORST = 100000 };

void cli_kld_defaults(void *settings)
{
    struct cli_kld *s = settings;
    *s = (struct cli_kld){.n_chunks = -1};
    cli_model_defaults(&s->load);
    cli_machine_defaults(&s->machine);
}

const struct cli_option cli_kld_table[] = {
    {.type = CLI_HEADING, .help = "Input"},
    {.names = "-m --model",
     CLI_EACH,
     "FILE",
     "a model to compare with the base: a GGUF file, any part of a split one; again for more, "
     "which share the base's evaluation",
     AT(models)},
    {.names = "--base",
     CLI_TEXT,
     "FILE",
     "what is taken as the truth: a model, or a file that assay record, assay perplexity "
     "--kl-divergence-base or llama-perplexity wrote, which needs no -f",
     AT(base),
     .required = true},
    {.type = CLI_GROUP, .group = cli_text_table, .offset = AT(text)},

    {.type = CLI_HEADING, .help = "Evaluation"},
    {.names = "-c --ctx-size",
     CLI_COUNT,
     "N",
     "tokens per window, of which the second half is scored (default: 512, or the "
     "base file's)",
     AT(n_ctx),
     1,
     ANY,
     .env = "LLAMA_ARG_CTX_SIZE"},
    {.names = "--chunks",
     CLI_COUNT,
     "N",
     "evaluate the first N windows only (default: -1, all)",
     AT(n_chunks),
     -1,
     ANY},
    {.names = "--chunk-from",
     CLI_COUNT,
     "N",
     "leave out the first N windows (default: 0)",
     AT(chunk_from),
     0,
     ANY},
    {.names = "--js",
     CLI_ON,
     NULL,
     "also the Jensen-Shannon divergence, which takes a second pass over the vocabulary",
     AT(js)},
    {.names = "--llama-compat",
     CLI_ON,
     NULL,
     "with a base-logits file: leave out tokens of the base with ln p <= -16, and the summary of "
     "fewer than 100 tokens, as llama-perplexity does",
     AT(llama_compat)},

    {.type = CLI_GROUP, .group = cli_model_table, .offset = AT(load)},

    {.type = CLI_HEADING, .help = "Output"},
    {.names = "--per-token",
     CLI_TEXT,
     "FILE",
     "write a table (TSV) with a line for each scored token and model",
     AT(per_token_file)},
    {.names = "--context-curve",
     CLI_ON,
     NULL,
     "print the mean divergence by position",
     AT(context_curve)},
    {.names = "--worst",
     CLI_COUNT,
     "N",
     "print the N tokens of the largest divergence, with the text before them (default: 0)",
     AT(n_worst),
     0,
     MOST_WORST},
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
