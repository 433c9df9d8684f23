#include "cli/options/perplexity.h"

/* Documents have windows of their own, and a base-logits file has those of one text. */
const char *cli_perplexity_single(const struct cli_perplexity_settings *s)
{
    bool records_logits = s->base_file && s->record_format == CLI_RECORD_LOGITS;
    return records_logits                        ? "a base-logits file"
           : s->llama_compat                     ? "--llama-compat"
           : s->stride                           ? "--ppl-stride"
           : s->protocol != CLI_PROTOCOL_DEFAULT ? "--protocol fixed"
                                                 : NULL;
}

void cli_perplexity_defaults(void *opaque)
{
    struct cli_perplexity_settings *settings = opaque;
    *settings = (struct cli_perplexity_settings){
        .hellaswag_tasks = -1,
        .winogrande_tasks = -1,
        .multiple_choice_tasks = -1,
        .text.chat = cli_chat_defaults,
    };
    cli_window_defaults(&settings->windows);
    cli_evaluate_defaults(&settings->evaluate);
}

/* Where a row's setting lives. */
#define AT(member) offsetof(struct cli_perplexity_settings, member)

enum { ANY = INT32_MAX };

const struct cli_option cli_perplexity_options[] = {
    {.type = CLI_HEADING, .help = "Input"},
    {.type = CLI_GROUP, .group = cli_model_file_options, .offset = AT(model)},
    {.type = CLI_GROUP, .group = cli_label_options, .offset = AT(labels)},
    {.type = CLI_GROUP, .group = cli_texts_options, .offset = AT(text)},

    {.type = CLI_HEADING, .help = "Evaluation"},
    {"--protocol", CLI_CHOICE, "NAME",
     "default: windows of which the second half is scored, as llama-perplexity does; "
     "fixed: windows of which every token is scored, as is common with Hugging Face models",
     AT(protocol), .choices = "default fixed"},
    {.type = CLI_GROUP,
     .group = cli_window_options,
     .offset = AT(windows),
     .help = " (default: 512; with --protocol fixed: 4096). Several, as 512,4096, are evaluated "
             "one after the other, each with files of its own (--json r.json writes r-c512.json), "
             "and a table at the end"},
    {.type = CLI_GROUP, .group = cli_chunk_from_options, .offset = AT(windows)},
    {.type = CLI_GROUP, .group = cli_stop_options, .offset = AT(windows)},
    {"--ppl-stride", CLI_COUNT, "N",
     "begin a window every N tokens and score the last N of each (default: 0, windows side by "
     "side)",
     AT(stride), 0, ANY},
    {"--split-lines", CLI_ON, NULL, "tokenise line by line", AT(split_lines)},
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
     "multiple choice: -f is a file of tasks in llama-perplexity's binary format; or CSV as MMLU "
     "has it; or JSON: question, choices, answer, or as ARC, PIQA and TruthfulQA (MC1) are "
     "published (docs/tasks.md)",
     AT(multiple_choice)},
    {"--mc2", CLI_ON, NULL,
     "TruthfulQA's MC2: several answers are right, and the score is the share of the probability "
     "that they have; -f is JSON: question, mc2_targets",
     AT(mc2)},
    {"--multiple-choice-tasks", CLI_COUNT, "N",
     "evaluate N of them, drawn as llama-perplexity draws (default: 0, all); with --mc2, too",
     AT(multiple_choice_tasks), 0, ANY},
    {"--task-labels", CLI_TEXT, "FILE",
     "the right choices of JSON tasks that lack them, a number in each line, as PIQA has them",
     AT(task_labels)},
    {"--per-task", CLI_TEXT, "FILE", "write a table (TSV) with a line for each task",
     AT(per_task_file)},

    {.type = CLI_GROUP, .group = cli_watch_options, .offset = AT(evaluate.watch)},
    {.type = CLI_GROUP, .group = cli_load_options, .offset = AT(evaluate)},

    {.type = CLI_HEADING, .help = "Output"},
    {"--ppl-output-type", CLI_COUNT, "0|1",
     "0: [window]perplexity, as it is known (default); 1: a line for each window", AT(output_type),
     0, 1},
    {.type = CLI_GROUP, .group = cli_per_token_options, .offset = AT(per_token_file)},
    {.type = CLI_GROUP, .group = cli_curve_options, .offset = AT(curve)},
    {.type = CLI_GROUP, .group = cli_evaluate_options, .offset = AT(evaluate)},
    {.type = CLI_GROUP, .group = cli_foreign_options},
    {.type = CLI_GROUP, .group = cli_other_programs_options},
    {0},
};
