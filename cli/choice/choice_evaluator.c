#include "cli/choice/choice_evaluator.h"

#include "base/content/kind.h"
#include "cli/process/say.h"

enum { DEFAULT_HELLASWAG_TASKS = 400 };

bool cli_choice_wanted(const struct cli_perplexity_settings *s)
{
    return s->hellaswag || s->winogrande || s->multiple_choice || s->mc2;
}

static enum eval_choice_kind kind_of(const struct cli_perplexity_settings *s)
{
    return s->hellaswag    ? EVAL_HELLASWAG
           : s->winogrande ? EVAL_WINOGRANDE
           : s->mc2        ? EVAL_MC2
                           : EVAL_MULTIPLE_CHOICE;
}

void cli_choice_note(const struct cli_perplexity_settings *s)
{
    const struct {
        const char *name;
        bool given, wanted;
    } counts[] = {
        {"hellaswag", s->hellaswag_tasks >= 0, s->hellaswag},
        {"winogrande", s->winogrande_tasks >= 0, s->winogrande},
        {"multiple-choice", s->multiple_choice_tasks >= 0, s->multiple_choice || s->mc2},
    };
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        if (counts[i].given && !counts[i].wanted)
            cli_say("assay: note: --%s-tasks is not used without --%s\n", counts[i].name,
                    counts[i].name);
    if (cli_choice_wanted(s) && s->windows.n_chunks != -1)
        cli_say("assay: note: --chunks is not used with --%s\n", cli_choice_name(kind_of(s)));
}

static size_t n_wanted(const struct cli_choice *t)
{
    const struct cli_perplexity_settings *s = t->settings;
    int64_t n = t->kind == EVAL_HELLASWAG    ? s->hellaswag_tasks
                : t->kind == EVAL_WINOGRANDE ? s->winogrande_tasks
                                             : s->multiple_choice_tasks;
    if (n >= 0)
        return (size_t)n;
    return t->kind == EVAL_HELLASWAG ? DEFAULT_HELLASWAG_TASKS : 0;
}

/* -f drops a last newline, which belongs to a binary file; the loaders know what to do with it. */
static enum status read_text(struct cli_choice *t, struct status_why *why)
{
    struct cli_text_settings whole = t->settings->text;
    if (!whole.binary_file)
        whole.binary_file = whole.text_file;
    return cli_text_open(&t->text, &whole, why);
}

static enum status parse(struct cli_choice *t, struct status_why *why)
{
    size_t n_mark = base_text_has_mark(&t->text) ? 3 : 0; /* no task begins with it */
    char *bytes = t->text.data + n_mark;
    size_t n_bytes = t->text.n_bytes - n_mark;
    struct eval_dataset_options options = {.kind = t->kind,
                                           .llama_compat = t->settings->llama_compat,
                                           .labels = {t->labels.data, t->labels.n_bytes}};
    return eval_dataset_read(&t->dataset, &options, bytes, n_bytes, why);
}

static enum status make_choices(struct cli_choice *t, struct status_why *why)
{
    struct eval_choices_options options = {
        .kind = t->kind,
        .n_tasks = n_wanted(t),
        .llama_compat = t->settings->llama_compat,
        .parse_special = t->settings->text.parse_special,
    };
    return eval_choices_make(&t->choices, &t->dataset, &options, model_tokenizer(t->model.model),
                             why);
}

static enum status load(struct cli_choice *t, struct status_why *why)
{
    const struct cli_text_settings *from = &t->settings->text;
    const char *labels = t->settings->task_labels;
    enum status status = read_text(t, why);
    if (!status && labels)
        status = base_text_read(&t->labels, labels, BASE_TEXT_MAX_BYTES, why);
    if (status)
        return status;
    status = parse(t, why);
    if (status == STATUS_FORMAT)
        (void)base_file_check_kind((struct base_string){t->text.data, t->text.n_bytes},
                                   "choice tasks", why);
    if (status) {
        status_context(why, "%s",
                       from->text_file     ? from->text_file
                       : from->binary_file ? from->binary_file
                                           : "-p");
        return status;
    }
    return make_choices(t, why);
}

static enum status open(void *self, struct status_why *why)
{
    struct cli_choice *t = self;
    const struct cli_perplexity_settings *s = t->settings;
    enum status status = cli_model_open(&t->model, s->model, &s->evaluate, s->llama_compat, why);
    if (!status)
        status = cli_backends_round(&t->e.backends, model_file(t->model.model), why);
    if (s->labels.n)
        t->model.label = s->labels.items[0];
    if (!status)
        status = load(t, why);
    t->e.models.model = t->model.model;
    t->e.units = &t->choices.sequences.units;
    return status;
}

static enum status again(void *self, struct status_why *why)
{
    struct cli_choice *t = self;
    t->tally = (struct eval_choice_tally){0};
    eval_choices_free(&t->choices);
    return make_choices(t, why);
}

static struct cli_model *model(void *self, size_t i)
{
    struct cli_choice *t = self;
    return i ? NULL : &t->model;
}

static void close(void *self)
{
    struct cli_choice *t = self;
    eval_choices_free(&t->choices);
    eval_dataset_free(&t->dataset);
    base_text_free(&t->text);
    base_text_free(&t->labels);
    cli_model_close(&t->model);
}

static void unit_done(void *self, size_t i)
{
    struct cli_choice *t = self;
    t->latest = eval_choice_tally_add(&t->tally, &t->choices.tasks[i], cli_choice_last_wins(t));
}

static enum status verdict(const void *self, struct status_why *why)
{
    const struct cli_choice *t = self;
    const struct eval_choice_tally *c = &t->tally;
    if (c->n_nonfinite)
        return status_fail(why, STATUS_NONFINITE,
                           "%zu of %zu task%s %s a score that is not finite; the first is task "
                           "%zu of the file",
                           c->n_nonfinite, c->n, status_plural(c->n),
                           c->n_nonfinite == 1 ? "has" : "have", c->first_nonfinite);
    return STATUS_OK;
}

static enum status outlook(const void *self, struct cli_outlook *out, struct status_why *why)
{
    static const char *const options[] = {
        [EVAL_HELLASWAG] = "--hellaswag-tasks",
        [EVAL_WINOGRANDE] = "--winogrande-tasks",
        [EVAL_MULTIPLE_CHOICE] = "--multiple-choice-tasks",
    };
    const struct cli_choice *t = self;
    (void)why;
    out->fewer = options[t->kind];
    out->n_fewer = t->choices.n;
    return STATUS_OK;
}

static const struct cli_evaluator evaluator = {
    .lines = &cli_choice_lines,
    .members = &cli_choice_members,
    .open = open,
    .unit_done = unit_done,
    .verdict = verdict,
    .close = close,
    .outlook = outlook,
    .again = again,
    .model = model,
};

enum status cli_choice_run(const struct cli_perplexity_settings *s, struct status_why *why)
{
    struct cli_choice t = {.settings = s,
                           .kind = kind_of(s),
                           .e = {.kind = &evaluator,
                                 .settings = &s->evaluate,
                                 .name = cli_choice_name(kind_of(s)),
                                 .model_file = s->model,
                                 .inputs = {{"-m", s->model}, {"--task-labels", s->task_labels}},
                                 .text = &s->text,
                                 .outputs = {{"--per-task", s->per_task_file, BASE_TASKS,
                                              .write = cli_choice_write_table}}}};
    return cli_evaluate(&t.e, why);
}
