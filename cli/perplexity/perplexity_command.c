/* assay perplexity: how well a model predicts a text. */
#include <math.h>
#include <string.h>

#include "cli/choice/choice_evaluator.h"
#include "cli/commands.h"
#include "cli/kld/kld_evaluator.h"
#include "cli/output/contexts.h"
#include "cli/perplexity/config.h"
#include "cli/perplexity/perplexity_evaluator.h"
#include "cli/process/say.h"

/* What --kl-divergence reads. A configuration may bring together what the rules keep apart. */
static enum status check_base(const struct cli_perplexity_settings *s, struct status_why *why)
{
    int n_tasks = s->hellaswag + s->winogrande + s->multiple_choice + s->mc2;
    if (s->kl_divergence && !s->base_file)
        return status_fail(why, STATUS_USAGE,
                           "--kl-divergence goes with --kl-divergence-base only");
    if (s->base_file && (s->stride || s->protocol != CLI_PROTOCOL_DEFAULT || n_tasks))
        return status_fail(why, STATUS_USAGE,
                           "--kl-divergence-base does not go with %s: it has the default windows",
                           n_tasks     ? "choice tasks"
                           : s->stride ? "--ppl-stride"
                                       : "--protocol fixed");
    if (n_tasks > 1 || (s->stride && s->protocol != CLI_PROTOCOL_DEFAULT))
        return status_fail(why, STATUS_USAGE,
                           n_tasks > 1 ? "several kinds of choice tasks are asked for: give one"
                                       : "--ppl-stride goes with --protocol default only");
    bool is_read = s->kl_divergence && cli_base_recognise(s->base_file) == &cli_base_model;
    return is_read ? cli_base_check_logits(s->base_file, why) : STATUS_OK;
}

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

static enum status check_documents(const struct cli_perplexity_settings *s, struct status_why *why)
{
    const char *what = cli_choice_wanted(s) ? "a choice task" : cli_perplexity_single(s);
    if (!what || (cli_choice_wanted(s) && s->text.texts.n <= 1))
        return STATUS_OK;
    return cli_text_check_single(&s->text, what, why);
}

/* A run that ends early leaves no whole recording. */
static enum status check_stop(const struct cli_perplexity_settings *s, struct status_why *why)
{
    bool records = s->base_file && !s->kl_divergence;
    if (!isnan(s->windows.stop_se) && records)
        return status_fail(why, STATUS_USAGE,
                           "--stop-when-se does not go with a recording, which has all windows");
    return STATUS_OK;
}

/* What the table of options cannot say. */
static enum status check_settings(const struct cli_perplexity_settings *s, struct status_why *why)
{
    enum status status = cli_labels_check(&s->labels, 1, why);
    if (!status)
        status = check_base(s, why);
    if (!status)
        status = check_documents(s, why);
    if (!status)
        status = check_stop(s, why);
    if (!status && !s->kl_divergence)
        status = cli_text_check(&s->text, why);
    if (status)
        return status;
    status = cli_window_check(&s->windows, !cli_choice_wanted(s) && !s->base_file, why);
    if (!status)
        cli_choice_note(s);
    return status;
}

/* With --kl-divergence it is assay kld under another name. */
static enum status compare(const struct cli_perplexity_settings *s, struct status_why *why)
{
    /* A list owns its items, this one is only read. */
    char *models[] = {(char *)(uintptr_t)s->model};
    struct cli_kld_settings kld;
    cli_kld_defaults(&kld);
    kld.base = s->base_file;
    kld.models = (struct cli_list){models, 1};
    kld.labels = s->labels;
    kld.text = s->text;
    kld.windows = s->windows;
    kld.llama_compat = s->llama_compat;
    kld.as_peer = true;
    kld.unused_chunks = s->windows.n_chunks;
    kld.windows.n_chunks = -1;
    kld.per_token_file = s->per_token_file;
    kld.divergence.curve = s->curve;
    kld.evaluate = s->evaluate;
    return cli_kld_run(&kld, why);
}

/* By the name of llama-perplexity the program replaces such a file as that does. */
static bool replaces_recording(const struct cli_perplexity_settings *s)
{
    return s->base_file && !s->only_new && !s->evaluate.state_file &&
           cli_base_recognise(s->base_file) == &cli_base_logits;
}

/* Tasks are what they contain, and llama-perplexity knows no documents, whatever a file is called.
 */
static bool is_single(const struct cli_perplexity_settings *s, const struct cli_args *args)
{
    return s->text.texts.n == 1 && (cli_choice_wanted(s) || cli_called_as_peer(args));
}

static enum status run_one(const void *settings, struct status_why *why)
{
    return cli_perplexity_run(settings, why);
}

/* Several context sizes, where windows are laid over a text. */
static enum status run_contexts(struct cli_perplexity_settings *s, struct status_why *why)
{
    struct cli_contexts contexts = {
        .windows = &s->windows,
        .evaluate = &s->evaluate,
        .text = &s->text,
        .per_token_file = &s->per_token_file,
        .head = "| n_ctx | windows | tokens | PPL |\n| ---: | ---: | ---: | ---: |\n",
        .run = run_one,
        .settings = s};
    s->rows = &contexts.rows;
    return cli_contexts_run(&contexts, why);
}

static enum status run_perplexity(const void *settings, const struct cli_args *args,
                                  struct status_why *why)
{
    struct cli_perplexity_settings s = *(const struct cli_perplexity_settings *)settings;
    cli_text_settle(&s.text);
    s.text.undivided = is_single(&s, args);
    if (s.text.undivided)
        s.text.text_file = s.text.texts.items[0];
    enum status status = cli_watch_check(&s.evaluate, why);
    if (!status)
        status = check_settings(&s, why);
    if (status)
        return status;
    if (cli_choice_wanted(&s))
        return cli_choice_run(&s, why);
    if (s.kl_divergence)
        return compare(&s, why);
    s.only_new = !cli_called_as_peer(args);
    if (replaces_recording(&s))
        cli_say("assay: note: %s exists and is replaced, as llama-perplexity does\n", s.base_file);
    return s.windows.n_ctx.more ? run_contexts(&s, why) : cli_perplexity_run(&s, why);
}

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
        .text.chat = cli_chat_defaults,
    };
    cli_window_defaults(&settings->windows);
    cli_evaluate_defaults(&settings->evaluate);
}

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

    {.type = CLI_HEADING, .help = "Replacing tensors (docs/hot-swap.md)"},
    {.type = CLI_GROUP, .group = cli_watch_options, .offset = AT(evaluate.watch)},

    {.type = CLI_GROUP, .group = cli_model_options, .offset = AT(evaluate.load)},
    {.type = CLI_GROUP,
     .group = cli_activations_options,
     .offset = AT(evaluate.machine.activations)},

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

#define TASKS "--hellaswag --winogrande --multiple-choice --mc2"

static const struct cli_rule rules[] = {
    {"--kl-divergence", CLI_NEEDS, "--kl-divergence-base"},
    {"--kl-divergence-base", CLI_NOT_WITH, "--protocol=fixed --ppl-stride " TASKS,
     "it has the default windows"},
    {"--ppl-stride", CLI_NEEDS, "--protocol=default"},
    {"--split-lines", CLI_NEEDS, "--protocol=fixed"},
    {TASKS, CLI_ONE_OF},
    {"--protocol=fixed --chunk-from --stop-when-se --ppl-stride --ppl-output-type --per-token "
     "--context-curve --mask --chat-template",
     CLI_NOT_WITH, TASKS},
    {"--per-task --task-labels", CLI_NEEDS, TASKS},
    {0},
};

const struct cli_command cli_command_perplexity = {
    .name = "perplexity",
    .usage = "[-m] MODEL -f TEXT [options]",
    .summary = "Evaluate the perplexity of a model on a text.",
    .description =
        "All options of llama-perplexity are taken, and those of ik_llama.cpp's, and mean the\n"
        "same. An option that cannot change a number here (-fa, -ub, --mlock, ...) is accepted\n"
        "and ignored; one that could, and is not implemented, is an error. docs/drop-in.md\n"
        "lists them.",
    .examples =
        "assay perplexity model.gguf -f wiki.test.raw\n"
        "The perplexity of a model on a text, in windows of 512 tokens.\n"
        "assay perplexity model.gguf -f - -c 2048 --json result.json < text\n"
        "A text from standard input, longer windows, and a result file with every setting.\n"
        "assay perplexity model.gguf -f corpus -f more.jsonl --stop-when-se 0.005\n"
        "The files of a folder and lines of JSON as documents, by file and category, until the "
        "mean is known well enough.\n"
        "assay perplexity model.gguf -f hellaswag.txt --hellaswag\n"
        "Choice tasks in place of a text.",
    .options = cli_perplexity_options,
    .rules = rules,
    .settings_bytes = sizeof(struct cli_perplexity_settings),
    .evaluate = AT(evaluate),
    .defaults = cli_perplexity_defaults,
    .before = cli_config_apply,
    .after = cli_config_note,
    .run = run_perplexity,
};
