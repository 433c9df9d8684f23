/* What choice tasks write: a table with a line for each task, and the result document. */
#include <math.h>

#include "cli/choice/choice_evaluator.h"
#include "cli/output/json_parts.h"

static const char *const kind_names[] = {
    [EVAL_HELLASWAG] = "hellaswag",
    [EVAL_WINOGRANDE] = "winogrande",
    [EVAL_MULTIPLE_CHOICE] = "multiple-choice",
    [EVAL_MC2] = "mc2",
};

const char *cli_choice_name(enum eval_choice_kind kind)
{
    return kind_names[kind];
}

bool cli_choice_last_wins(const struct cli_choice *t)
{
    return t->settings->llama_compat && t->kind == EVAL_WINOGRANDE;
}

enum status cli_choice_write_table(const void *self, struct base_file *file, struct status_why *why)
{
    (void)why;
    const struct cli_choice *t = self;
    base_file_printf(file, "task\tanswer\tchoice\tscores\n");
    for (size_t k = 0; k < t->choices.n; k++) {
        const struct eval_choice_task *task = &t->choices.tasks[k];
        if (!task->done)
            continue;
        struct eval_choice_winners w = eval_choice_winners(task, cli_choice_last_wins(t));
        base_file_printf(file, "%zu\t%zu\t", task->index, task->answer);
        if (w.finite)
            base_file_printf(file, "%zu", w.mean);
        base_file_printf(file, "\t");
        for (size_t i = 0; i < task->n_choices; i++) {
            double mean = eval_choice_score(&task->choices[i]).mean;
            if (isnan(mean))
                base_file_printf(file, "%snan", i ? "," : "");
            else
                base_file_printf(file, "%s%.12g", i ? "," : "", mean);
        }
        base_file_printf(file, "\n");
    }
    return STATUS_OK;
}

static void add_share(struct base_json *json, cJSON *result, const char *key, size_t n_right,
                      size_t n)
{
    double f = n ? (double)n_right / (double)n : (double)NAN;
    cJSON *o = base_json_object(json, result, key);
    base_json_uint(json, o, "n_right", n_right);
    base_json_real(json, o, "share", f);
    base_json_real(json, o, "error", eval_share_error(f, n));
}

static void add_result(const void *self, struct base_json *json)
{
    const struct cli_choice *t = self;
    const struct eval_choice_tally *c = &t->tally;
    base_json_text(json, json->root, "kind", cli_choice_name(t->kind));
    cJSON *o = base_json_object(json, json->root, "result");
    double low = (double)NAN, high = (double)NAN;
    if (c->n)
        eval_share_interval((double)c->n_right / (double)c->n, c->n, &low, &high);
    base_json_flag(json, o, "complete", c->n == t->choices.n);
    base_json_uint(json, o, "n_tasks", c->n);
    add_share(json, o, "score", c->n_right, c->n);
    base_json_real(json, o, "score_low", low);
    base_json_real(json, o, "score_high", high);
    add_share(json, o, "acc", c->n_right_sum, c->n);
    add_share(json, o, "acc_norm", c->n_right_per_char, c->n);
    if (t->kind == EVAL_MC2) {
        struct base_estimate mass = base_moments_estimate(&c->mass);
        cJSON *mc2 = base_json_object(json, o, "mc2");
        base_json_real(json, mc2, "mean", mass.value);
        base_json_real(json, mc2, "error", mass.error);
    }
    base_json_real(json, o, "chance", c->n ? c->chance / (double)c->n : (double)NAN);
    base_json_uint(json, o, "n_nonfinite", c->n_nonfinite);
}

static void add_choice(struct base_json *json, cJSON *task, const char *key, size_t choice)
{
    base_json_real(json, task, key, choice == EVAL_NO_CHOICE ? (double)NAN : (double)choice);
}

static void add_tasks(const void *self, struct base_json *json)
{
    const struct cli_choice *t = self;
    cJSON *list = base_json_list(json, json->root, "tasks");
    for (size_t k = 0; k < t->choices.n; k++) {
        const struct eval_choice_task *task = &t->choices.tasks[k];
        if (!task->done)
            continue;
        struct eval_choice_winners w = eval_choice_winners(task, cli_choice_last_wins(t));
        cJSON *o = base_json_object(json, list, NULL);
        base_json_uint(json, o, "task", task->index);
        base_json_uint(json, o, "answer", task->answer);
        if (task->n_right) {
            base_json_uint(json, o, "n_right", task->n_right);
            base_json_real(json, o, "mc2", eval_choice_mass(task));
        }
        add_choice(json, o, "choice", w.mean);
        add_choice(json, o, "choice_acc", w.sum);
        add_choice(json, o, "choice_acc_norm", w.per_char);
        cJSON *scores = base_json_list(json, o, "scores");
        cJSON *sums = base_json_list(json, o, "sums");
        cJSON *n_chars = base_json_list(json, o, "n_chars");
        for (size_t i = 0; i < task->n_choices; i++) {
            struct eval_choice_score s = eval_choice_score(&task->choices[i]);
            base_json_real(json, scores, NULL, s.mean);
            base_json_real(json, sums, NULL, s.sum);
            base_json_uint(json, n_chars, NULL, task->choices[i].n_chars);
        }
    }
}

static void describe(const void *self, struct base_json *json, bool for_journal)
{
    const struct cli_choice *t = self;
    const struct cli_perplexity_settings *s = t->settings;
    cJSON *settings = base_json_object(json, json->root, "settings");
    base_json_uint(json, settings, "n_tasks", t->choices.n);
    base_json_flag(json, settings, "llama_compat", s->llama_compat);
    cli_json_add_text_settings(json, settings, &s->text);
    cli_json_add_computation(json, settings, &t->e);
    cli_json_add_model(json, json->root, "model", &t->model, !for_journal);
    cJSON *text = cli_json_add_input(json, &t->text);
    base_json_uint(json, text, "n_tasks", t->dataset.n_questions);
    if (*t->labels.sha256)
        base_json_text(json, text, "labels_sha256", t->labels.sha256);
}

const struct cli_members cli_choice_members = {"assay-tasks", add_result, describe, add_tasks,
                                               NULL};
