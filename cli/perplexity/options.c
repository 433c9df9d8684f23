/* The options of assay perplexity. */
#include "cli/perplexity/options.h"

/* Where a row's setting lives. */
#define AT(member) offsetof(struct cli_perplexity_settings, member)

enum { ANY = INT32_MAX };

void cli_perplexity_defaults(void *opaque)
{
    struct cli_perplexity_settings *settings = opaque;
    *settings = (struct cli_perplexity_settings){
        .hellaswag_tasks = -1,
        .winogrande_tasks = -1,
        .multiple_choice_tasks = -1,
    };
    cli_window_defaults(&settings->windows);
    cli_model_defaults(&settings->load);
    cli_machine_defaults(&settings->evaluate.machine);
}

const struct cli_option cli_perplexity_options[] = {
    {.type = CLI_HEADING, .help = "Input"},
    {.type = CLI_GROUP, .group = cli_model_file_options, .offset = AT(model)},
    {.type = CLI_GROUP, .group = cli_text_options, .offset = AT(text)},

    {.type = CLI_HEADING, .help = "Evaluation"},
    {"--protocol", CLI_CHOICE, "NAME",
     "default: windows of which the second half is scored, as llama-perplexity does; "
     "fixed: windows of which every token is scored, as is common with Hugging Face models",
     AT(protocol), .choices = "default fixed"},
    {.type = CLI_GROUP,
     .group = cli_window_options,
     .offset = AT(windows),
     .help = " (default: 512; with --protocol fixed: 4096)"},
    {.type = CLI_GROUP, .group = cli_chunk_from_options, .offset = AT(windows)},
    {"--ppl-stride", CLI_COUNT, "N",
     "begin a window every N tokens and score the last N of each (default: 0, windows side by "
     "side)",
     AT(stride), 0, ANY},
    {"--split-lines", CLI_ON, NULL, "with --protocol fixed: tokenise line by line",
     AT(split_lines)},
    {"--llama-compat", CLI_ON, NULL,
     "reproduce llama-perplexity's numbers where it is known to be wrong", AT(llama_compat)},

    {.type = CLI_HEADING, .help = "KL divergence"},
    {"--kl-divergence-base --save-all-logits", CLI_TEXT, "FILE",
     "record the model's log-probabilities in a base-logits file, which llama-perplexity reads, "
     "too; with --kl-divergence it is read",
     AT(base_file)},
    {"--kl-divergence", CLI_ON, NULL,
     "compare the model with that file, as assay kld --base FILE does; tokens and windows are the "
     "file's, -f is not needed",
     AT(kl_divergence)},
    {.type = CLI_GROUP, .group = cli_force_options, .offset = AT(force)},

    {.type = CLI_HEADING, .help = "Choice tasks (instead of perplexity)"},
    {"--hellaswag", CLI_ON, NULL,
     "HellaSwag: -f has six lines a task, the context, the index of the right ending and four "
     "endings; or JSON lines: ctx, endings, label",
     AT(hellaswag)},
    {"--hellaswag-tasks", CLI_COUNT, "N",
     "evaluate N of them, drawn as llama-perplexity draws (default: 400; 0: all)",
     AT(hellaswag_tasks), 0, ANY},
    {"--winogrande", CLI_ON, NULL,
     "Winogrande: -f is CSV, index,sentence with a blank _,choice,choice,answer 1 or 2; or JSON "
     "lines: sentence, option1, option2, answer",
     AT(winogrande)},
    {"--winogrande-tasks", CLI_COUNT, "N",
     "evaluate N of them, drawn as llama-perplexity draws (default: 0, all)", AT(winogrande_tasks),
     0, ANY},
    {"--multiple-choice", CLI_ON, NULL,
     "multiple choice: -f is a file of tasks in llama-perplexity's binary format; or JSON "
     "lines: question, choices, answer",
     AT(multiple_choice)},
    {"--multiple-choice-tasks", CLI_COUNT, "N",
     "evaluate N of them, drawn as llama-perplexity draws (default: 0, all)",
     AT(multiple_choice_tasks), 0, ANY},
    {"--per-task", CLI_TEXT, "FILE", "write a table (TSV) with a line for each task",
     AT(per_task_file)},

    {.type = CLI_GROUP, .group = cli_model_options, .offset = AT(load)},

    {.type = CLI_HEADING, .help = "Output"},
    {"--ppl-output-type", CLI_COUNT, "0|1",
     "0: [window]perplexity, as it is known (default); 1: a line for each window", AT(output_type),
     0, 1},
    {.type = CLI_GROUP, .group = cli_per_token_options, .offset = AT(per_token_file)},
    {"--context-curve", CLI_ON, NULL, "print the mean negative log-probability by position",
     AT(context_curve)},
    {.type = CLI_GROUP, .group = cli_evaluate_options, .offset = AT(evaluate)},
    {.type = CLI_GROUP, .group = cli_foreign_options},
    {0},
};
