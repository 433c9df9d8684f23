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

/* What --kl-divergence reads. */
static enum status check_base(const struct cli_perplexity_settings *s, struct status_why *why)
{
    bool is_read = s->kl_divergence && cli_base_recognise(s->base_file) == &cli_base_model;
    return is_read ? cli_base_check_logits(s->base_file, why) : STATUS_OK;
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

#define TASKS "--hellaswag --winogrande --multiple-choice --mc2"

static const struct cli_rule rules[] = {
    {"--kl-divergence", CLI_NEEDS, "--kl-divergence-base", .always = true},
    {"--kl-divergence-base", CLI_NOT_WITH, "--protocol=fixed --ppl-stride " TASKS,
     "it has the default windows", .always = true},
    {"--ppl-stride", CLI_NEEDS, "--protocol=default", .always = true},
    {"--split-lines", CLI_NEEDS, "--protocol=fixed"},
    {TASKS, CLI_ONE_OF, .always = true},
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
    .evaluate = offsetof(struct cli_perplexity_settings, evaluate),
    .defaults = cli_perplexity_defaults,
    .before = cli_config_apply,
    .after = cli_config_note,
    .run = run_perplexity,
};
