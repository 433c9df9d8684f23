/* The lines of choice tasks. Their formats are llama-perplexity's, because scripts read them. */
#include <stdio.h>

#include "base/text/printable.h"
#include "cli/choice/choice_evaluator.h"
#include "cli/process/run.h"
#include "cli/process/say.h"
#include "eval/llama_compat.h"

static const char *const titles[] = {
    [EVAL_HELLASWAG] = "HellaSwag",
    [EVAL_WINOGRANDE] = "Winogrande",
    [EVAL_MULTIPLE_CHOICE] = "multiple choice",
    [EVAL_MC2] = "TruthfulQA MC2",
};

static void print_beginning(const void *self)
{
    const struct cli_choice *t = self;
    size_t n_longer = 0,
           n_ctx =
               cli_plan_options(&t->settings->windows, t->model.model, CLI_DEFAULT_CONTEXT).n_ctx;
    for (size_t k = 0; k < t->choices.n; k++) {
        bool longer = false;
        for (size_t i = 0; i < t->choices.tasks[k].n_choices; i++)
            longer = longer || t->choices.tasks[k].choices[i].tokens.n > n_ctx;
        n_longer += longer;
    }
    cli_say("assay: %s: %zu of %zu task%s, at most %zu tokens, batches of %zu tokens\n",
            titles[t->kind], t->choices.n, t->dataset.n_questions,
            status_plural(t->dataset.n_questions), t->choices.n_tokens_max,
            t->e.units->most.n_tokens);
    if (n_longer)
        cli_say("assay: note: %zu task%s longer than -c %zu: the context is as long as needed\n",
                n_longer, n_longer == 1 ? " is" : "s are", n_ctx);
    if (t->kind == EVAL_HELLASWAG)
        puts("\ntask\tacc_norm\t95% confidence interval");
    if (t->kind == EVAL_MULTIPLE_CHOICE)
        puts("\ntask\tacc_norm");
    if (t->kind == EVAL_MC2)
        puts("\ntask\tmc2");
}

static double percent(size_t part, size_t n)
{
    return n ? 100 * ((double)part / (double)n) : 0;
}

static double percent_error(size_t part, size_t n)
{
    return n ? 100 * eval_share_error((double)part / (double)n, n) : 0;
}

static void print_task(void *self, size_t i)
{
    const struct cli_choice *t = self;
    const struct eval_choice_task *task = &t->choices.tasks[i];
    const struct eval_choice_winners w = t->latest;
    size_t n = t->tally.n;
    double share = percent(t->tally.n_right, n), low, high;
    switch (t->kind) {
    case EVAL_HELLASWAG:
        eval_share_interval((double)t->tally.n_right / (double)n, n, &low, &high);
        printf("%zu\t%3.8lf%%\t[%3.4lf%%, %3.4lf%%]\n", n, share, 100 * low, 100 * high);
        break;
    case EVAL_WINOGRANDE:
        printf("%zu\t%.4lf\t%10.6f  %10.6f  %zu  %zu\n", n, share,
               base_unsigned_nan(eval_choice_score(&task->choices[0]).mean),
               base_unsigned_nan(eval_choice_score(&task->choices[1]).mean),
               w.finite ? w.mean + 1 : 0, task->answer + 1);
        break;
    case EVAL_MULTIPLE_CHOICE:
        printf("%zu\t%.8lf\n", n, share);
        break;
    case EVAL_MC2:
        printf("%zu\t%.8lf\n", n, 100 * base_moments_mean(&t->tally.mass));
        break;
    }
    cli_flush();
}

static void print_share(FILE *to, const char *label, size_t n_right, size_t n)
{
    fprintf(to, "%s: %.4f +/- %.4f\n", label, percent(n_right, n), percent_error(n_right, n));
}

/* What llama-perplexity says at the end. */
static void print_final(FILE *to, const struct cli_choice *t)
{
    const struct eval_choice_tally *c = &t->tally;
    if (t->kind == EVAL_WINOGRANDE &&
        (c->n >= EVAL_COMPAT_LEAST_TASKS || !t->settings->llama_compat))
        fprintf(to, "Final Winogrande score(%zu tasks): %.4lf +/- %.4lf\n", c->n,
                percent(c->n_right, c->n), percent_error(c->n_right, c->n));
    if (t->kind == EVAL_MC2) {
        struct base_estimate mass = base_moments_estimate(&c->mass);
        fprintf(to, "MC2: %.4f +/- %.4f\n", 100 * mass.value, 100 * mass.error);
    }
    if (t->kind != EVAL_MULTIPLE_CHOICE || c->n == 0)
        return;
    print_share(to, "Final result", c->n_right, c->n);
    /* One right answer a task: tasks / answers, which is 1 / mean(answers). */
    double chance = (double)c->n / (double)c->n_choices;
    fprintf(to, "Random chance: %.4f +/- %.4f\n", 100 * chance,
            100 * eval_share_error(chance, c->n));
    fprintf(to, "Chance by task, mean of 1/answers: %.4f\n", 100 * c->chance / (double)c->n);
}

static void print_end(void *self)
{
    const struct cli_choice *t = self;
    const struct eval_choice_tally *c = &t->tally;
    putchar('\n');
    if (c->n < t->choices.n)
        printf("Incomplete: %zu of %zu task%s\n", c->n, t->choices.n, status_plural(t->choices.n));
    if (c->n_nonfinite)
        printf("Scores that are not finite: in %zu of %zu task%s\n", c->n_nonfinite, c->n,
               status_plural(c->n));
    print_share(stdout, "Harness acc (sum)", c->n_right_sum, c->n);
    print_share(stdout, "Harness acc_norm (per character)", c->n_right_per_char, c->n);
    print_final(stdout, t);
    cli_flush();
    cli_print_speed(&t->e);
    if (!cli_same_stream())
        print_final(stderr, t);
}

const struct cli_lines cli_choice_lines = {print_beginning, print_task, print_end};
