/* The options of assay perplexity. */
#include "cli/options_perplexity.h"

/* Where a row's setting lives. */
#define AT(member) offsetof(struct cli_perplexity, member)

enum { ANY = INT32_MAX };

void cli_perplexity_defaults(void *opaque)
{
    struct cli_perplexity *settings = opaque;
    *settings = (struct cli_perplexity){
        .n_chunks = -1,
        .hellaswag_tasks = -1,
        .winogrande_tasks = -1,
        .multiple_choice_tasks = -1,
    };
    cli_model_defaults(&settings->load);
    cli_machine_defaults(&settings->machine);
}

const struct cli_option cli_perplexity_table[] = {
    {.type = CLI_HEADING, .help = "Input"},
    {.names = "-m --model",
     CLI_TEXT,
     "FILE",
     "the model: a GGUF file, any part of a split one",
     AT(model),
     .env = "LLAMA_ARG_MODEL",
     .required = true},
    {.type = CLI_GROUP, .group = cli_text_table, .offset = AT(text)},

    {.type = CLI_HEADING, .help = "Evaluation"},
    {.names = "--protocol",
     CLI_CHOICE,
     "NAME",
     "default: windows of which the second half is scored, as llama-perplexity does; "
     "fixed: windows of which every token is scored, as is common with Hugging Face models",
     AT(protocol),
     .choices = "default fixed"},
    {.names = "-c --ctx-size",
     CLI_COUNT,
     "N",
     "tokens per window (default: 512; with --protocol fixed: 4096)",
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
    {.names = "--ppl-stride",
     CLI_COUNT,
     "N",
     "begin a window every N tokens and score the last N of each (default: 0, windows side by "
     "side)",
     AT(stride),
     0,
     ANY},
    {.names = "--split-lines",
     CLI_ON,
     NULL,
     "with --protocol fixed: tokenise line by line",
     AT(split_lines)},
    {.names = "--llama-compat",
     CLI_ON,
     NULL,
     "reproduce llama-perplexity's numbers where it is known to be wrong",
     AT(llama_compat)},

    {.type = CLI_HEADING, .help = "Choice tasks (instead of perplexity)"},
    {.names = "--hellaswag",
     CLI_ON,
     NULL,
     "HellaSwag: -f has six lines a task, the context, the index of the right ending and four "
     "endings; or JSON lines: ctx, endings, label",
     AT(hellaswag)},
    {.names = "--hellaswag-tasks",
     CLI_COUNT,
     "N",
     "evaluate N of them, drawn as llama-perplexity draws (default: 400; 0: all)",
     AT(hellaswag_tasks),
     0,
     ANY},
    {.names = "--winogrande",
     CLI_ON,
     NULL,
     "Winogrande: -f is CSV, index,sentence with a blank _,choice,choice,answer 1 or 2; or JSON "
     "lines: sentence, option1, option2, answer",
     AT(winogrande)},
    {.names = "--winogrande-tasks",
     CLI_COUNT,
     "N",
     "evaluate N of them, drawn as llama-perplexity draws (default: 0, all)",
     AT(winogrande_tasks),
     0,
     ANY},
    {.names = "--multiple-choice",
     CLI_ON,
     NULL,
     "multiple choice: -f is a file of tasks in llama-perplexity's binary format; or JSON "
     "lines: question, choices, answer",
     AT(multiple_choice)},
    {.names = "--multiple-choice-tasks",
     CLI_COUNT,
     "N",
     "evaluate N of them, drawn as llama-perplexity draws (default: 0, all)",
     AT(multiple_choice_tasks),
     0,
     ANY},
    {.names = "--per-task",
     CLI_TEXT,
     "FILE",
     "write a table (TSV) with a line for each task",
     AT(per_task_file)},

    {.type = CLI_GROUP, .group = cli_model_table, .offset = AT(load)},

    {.type = CLI_HEADING, .help = "Output"},
    {.names = "--ppl-output-type",
     CLI_COUNT,
     "0|1",
     "0: [window]perplexity, as it is known (default); 1: a line for each window",
     AT(output_type),
     0,
     1},
    {.names = "--per-token",
     CLI_TEXT,
     "FILE",
     "write a table (TSV) with a line for each scored token",
     AT(per_token_file)},
    {.names = "--context-curve",
     CLI_ON,
     NULL,
     "print the mean negative log-probability by position",
     AT(context_curve)},
    {.type = CLI_GROUP, .group = cli_output_table, .offset = AT(output)},

    {.type = CLI_GROUP, .group = cli_machine_table, .offset = AT(machine)},
    {.type = CLI_GROUP, .group = cli_foreign_table},

    /* Refused: what assay kld does without a file. */
    {.names = "--kl-divergence",
     CLI_REFUSED,
     NULL,
     "base files are not read or written; compare models with assay kld"},
    {.names = "--kl-divergence-base --save-all-logits",
     CLI_REFUSED,
     "FILE",
     "base files are not read or written; compare models with assay kld"},
    {0},
};
