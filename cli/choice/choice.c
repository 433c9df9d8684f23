#include "cli/choice/choice.h"

#include <string.h>

#include "cli/session/outputs.h"
#include "cli/session/state.h"

enum { DEFAULT_HELLASWAG_TASKS = 400 };

static const char *const kind_names[] = {
    [EVAL_HELLASWAG] = "hellaswag",
    [EVAL_WINOGRANDE] = "winogrande",
    [EVAL_MULTIPLE_CHOICE] = "multiple-choice",
};

const char *cli_tasks_name(enum eval_choice_kind kind)
{
    return kind_names[kind];
}

bool cli_tasks_wanted(const struct cli_perplexity *s)
{
    return s->hellaswag || s->winogrande || s->multiple_choice;
}

bool cli_tasks_last_wins(const struct cli_tasks *t)
{
    return t->settings->llama_compat && t->kind == EVAL_WINOGRANDE;
}

static enum eval_choice_kind kind_of(const struct cli_perplexity *s)
{
    return s->hellaswag ? EVAL_HELLASWAG : s->winogrande ? EVAL_WINOGRANDE : EVAL_MULTIPLE_CHOICE;
}

enum status cli_tasks_check(const struct cli_perplexity *s, struct status_why *why)
{
    const struct {
        const char *name;
        bool given, wanted;
    } counts[] = {
        {"hellaswag", s->hellaswag_tasks >= 0, s->hellaswag},
        {"winogrande", s->winogrande_tasks >= 0, s->winogrande},
        {"multiple-choice", s->multiple_choice_tasks >= 0, s->multiple_choice},
    };
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        if (counts[i].given && !counts[i].wanted)
            return status_fail(why, STATUS_USAGE, "--%s-tasks goes with --%s only", counts[i].name,
                               counts[i].name);
    if (!cli_tasks_wanted(s))
        return s->per_task_file ? status_fail(why, STATUS_USAGE,
                                              "--per-task goes with --hellaswag, --winogrande and "
                                              "--multiple-choice only")
                                : STATUS_OK;
    if (s->hellaswag + s->winogrande + s->multiple_choice > 1)
        return status_fail(why, STATUS_USAGE,
                           "give one of --hellaswag, --winogrande and --multiple-choice");
    const struct {
        const char *name;
        bool given;
    } others[] = {
        {"--protocol fixed", s->protocol == CLI_PROTOCOL_FIXED},
        {"--chunks", s->windows.n_chunks != -1},
        {"--chunk-from", s->windows.chunk_from != 0},
        {"--ppl-stride", s->stride != 0},
        {"--split-lines", s->split_lines},
        {"--ppl-output-type", s->output_type != 0},
        {"--per-token", s->per_token_file != NULL},
        {"--context-curve", s->context_curve},
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (others[i].given)
            return status_fail(why, STATUS_USAGE, "%s does not go with --%s", others[i].name,
                               cli_tasks_name(kind_of(s)));
    return STATUS_OK;
}

static size_t n_wanted(const struct cli_tasks *t)
{
    const struct cli_perplexity *s = t->settings;
    int64_t n = t->kind == EVAL_HELLASWAG    ? s->hellaswag_tasks
                : t->kind == EVAL_WINOGRANDE ? s->winogrande_tasks
                                             : s->multiple_choice_tasks;
    if (n >= 0)
        return (size_t)n;
    return t->kind == EVAL_HELLASWAG ? DEFAULT_HELLASWAG_TASKS : 0;
}

/* -f drops a last newline, which belongs to a binary file; the loaders know what to do with it. */
static enum status read_text(struct cli_tasks *t, struct status_why *why)
{
    struct cli_text_settings whole = t->settings->text;
    if (!whole.binary_file)
        whole.binary_file = whole.text_file;
    return cli_text_open(&t->text, &whole, why);
}

static enum status parse(struct cli_tasks *t, struct status_why *why)
{
    char *bytes = t->text.data;
    size_t n_bytes = t->text.n_bytes;
    if (eval_dataset_is_jsonl(bytes, n_bytes))
        return eval_dataset_jsonl(&t->dataset, t->kind, bytes, n_bytes, why);
    if (t->kind == EVAL_HELLASWAG)
        return eval_dataset_hellaswag(&t->dataset, bytes, n_bytes, why);
    if (t->kind == EVAL_WINOGRANDE)
        return eval_dataset_winogrande(&t->dataset, bytes, n_bytes, t->settings->llama_compat, why);
    return eval_dataset_multiple_choice(&t->dataset, bytes, n_bytes, why);
}

static enum status load(struct cli_tasks *t, struct status_why *why)
{
    const struct cli_text_settings *from = &t->settings->text;
    enum status status = read_text(t, why);
    if (status != STATUS_OK)
        return status;
    status = parse(t, why);
    if (status != STATUS_OK) {
        status_context(why, "%s",
                       from->text_file     ? from->text_file
                       : from->binary_file ? from->binary_file
                                           : "-p");
        return status;
    }
    struct eval_choices_options options = {
        .kind = t->kind,
        .n_tasks = n_wanted(t),
        .llama_compat = t->settings->llama_compat,
        .parse_special = t->settings->text.parse_special,
    };
    return eval_choices_make(&t->choices, &t->dataset, &options, model_tokenizer(t->model.model),
                             why);
}

static enum status open_all(struct cli_tasks *t, struct status_why *why)
{
    const struct cli_perplexity *s = t->settings;
    enum status status = cli_job_open(&t->job, &s->machine, &s->output, why);
    if (status == STATUS_OK)
        status = cli_job_check_one_device(&t->job, "a choice task", why);
    if (status == STATUS_OK)
        status = cli_model_open(&t->model, s->model, &s->load, s->llama_compat,
                                s->output.hash_model, why);
    if (status == STATUS_OK)
        status = load(t, why);
    if (status == STATUS_OK)
        status = cli_job_choose_batch(&t->job, t->model.model, t->choices.n_tokens_max,
                                      4 * t->choices.n, &t->batch_tokens, why);
    cli_job_loaded(&t->job);
    return status;
}

static void close_all(struct cli_tasks *t)
{
    base_file_abandon(t->per_task_file);
    eval_journal_close(t->journal);
    eval_choices_free(&t->choices);
    eval_dataset_free(&t->dataset);
    eval_text_free(&t->text);
    cli_model_close(&t->model);
    cli_job_close(&t->job);
}

static enum status write_outputs(struct cli_tasks *t, struct status_why *why)
{
    enum status status = STATUS_OK;
    if (t->per_task_file) {
        cli_tasks_write_table(t, t->per_task_file);
        status = cli_output_commit(&t->per_task_file, STATUS_OK, why);
    }
    if (status == STATUS_OK && t->job.json_file)
        status = cli_output_commit(&t->job.json_file,
                                   cli_tasks_write_json(t, t->job.json_file, why), why);
    return status;
}

static void on_task(void *user, size_t i)
{
    cli_tasks_report_task(user, i);
}

static void on_progress(void *user, const struct eval_progress *now)
{
    struct cli_tasks *t = user;
    cli_progress_update(&t->job.progress, now);
}

static enum status create_outputs(struct cli_tasks *t, struct status_why *why)
{
    const struct cli_perplexity *s = t->settings;
    const struct cli_named_file outputs[] = {{"--json", s->output.json_file},
                                             {"--per-task", s->per_task_file}};
    enum status status = cli_outputs_check_model(outputs, sizeof outputs / sizeof *outputs, "-m",
                                                 t->model.model, why);
    if (status == STATUS_OK)
        status = cli_job_create_document(&t->job, why);
    if (status == STATUS_OK)
        status = cli_output_create(&t->per_task_file, s->per_task_file, why);
    if (status == STATUS_OK)
        status = cli_tasks_open_journal(t, why);
    return status;
}

/* The tasks that are done are reported whether or not all of them are. */
static enum status evaluate(struct cli_tasks *t, struct status_why *why)
{
    cli_job_catch_interrupts(&t->job);
    enum status status = create_outputs(t, why);
    if (status != STATUS_OK)
        return status;
    struct eval_choices_run run = {
        .model = t->model.model,
        .backend = t->job.backend,
        .batch_tokens = t->batch_tokens,
        .task_done = on_task,
        .progress = on_progress,
        .user = t,
        .journal = t->journal,
    };
    status = eval_choices_memory(&t->job.memory, &t->choices, &run, why);
    if (status != STATUS_OK)
        return status;
    cli_tasks_report_beginning(t);
    bool anything_left = !t->journal || eval_journal_n(t->journal) < t->choices.n;
    cli_job_begin(&t->job, anything_left);
    enum status run_status = eval_choices_run(&t->choices, &run, &t->job.stats, why);
    cli_progress_clear(&t->job.progress);
    if (run_status != STATUS_OK && run_status != STATUS_CANCELLED)
        return run_status;
    cli_tasks_report_end(t);
    status = write_outputs(t, why);
    if (status != STATUS_OK)
        return status;
    if (run_status == STATUS_CANCELLED)
        return cli_state_interrupted(t->settings->state_file, why);
    if (t->tally.n_nonfinite)
        return status_fail(why, STATUS_NONFINITE,
                           "%zu of %zu task%s %s a score that is not finite; the first is task "
                           "%zu of the file",
                           t->tally.n_nonfinite, t->tally.n, status_plural(t->tally.n),
                           t->tally.n_nonfinite == 1 ? "has" : "have", t->tally.first_nonfinite);
    return STATUS_OK;
}

enum status cli_tasks_run(const struct cli_perplexity *settings, struct status_why *why)
{
    struct cli_tasks t = {.settings = settings, .kind = kind_of(settings)};
    enum status status = open_all(&t, why);
    if (status == STATUS_OK)
        status = evaluate(&t, why);
    close_all(&t);
    return status;
}
