/* Choice tasks: who was right about which, by each of the three scores. */
#include "base/arithmetic.h"
#include "cli/results/compare.h"

const char *const cli_task_scores[CLI_N_TASK_SCORES] = {"score", "acc", "acc_norm"};

static const char *const choice_fields[CLI_N_TASK_SCORES] = {"choice", "choice_acc",
                                                             "choice_acc_norm"};

static bool is_right(const struct cli_field *task, size_t score)
{
    return cli_field_count(task, "answer") == cli_field_count(task, choice_fields[score]);
}

/* Where a score is not finite nothing was chosen. */
static enum status check_finite(const struct cli_field *task, struct status_why *why)
{
    struct cli_field choice = cli_field_at(task, choice_fields[0]);
    return !cJSON_IsNull(choice.value)
               ? STATUS_OK
               : status_fail(why, STATUS_NONFINITE,
                             "%s: %s is null, a score is not finite: there is nothing to compare",
                             choice.document->file, choice.name);
}

static enum status count_task(struct cli_compare *c, const struct cli_field *a,
                              const struct cli_field *b, struct status_why *why)
{
    enum status status = cli_fields_equal(a, b, "task answer", NULL, why);
    if (!status)
        status = check_finite(a, why);
    if (!status)
        status = check_finite(b, why);
    for (size_t s = 0; s < CLI_N_TASK_SCORES && !status; s++) {
        bool right_a = is_right(a, s), right_b = is_right(b, s);
        status = cli_compare_status(c, why);
        if (status)
            return status;
        struct eval_pair_counts *counts = &c->counts[s];
        if (right_a)
            *(right_b ? &counts->both : &counts->only_a) += 1;
        else
            *(right_b ? &counts->only_b : &counts->neither) += 1;
    }
    c->n_tasks++;
    return status;
}

enum status cli_compare_tasks(struct cli_compare *c, struct status_why *why)
{
    struct cli_field lists[2], items[2] = {{0}};
    size_t n[2] = {0};
    for (size_t side = 0; side < 2; side++) {
        struct cli_field root = cli_document_root(&c->sides[side].document);
        lists[side] = cli_field_list(&n[side], &root, "tasks");
        c->task_kind = cli_field_text(&root, "kind");
    }
    enum status status = cli_compare_status(c, why);
    if (status)
        return status;
    if (n[0] == 0 || n[1] == 0)
        return status_fail(why, STATUS_USAGE, "%s has no tasks", c->sides[n[0] != 0].document.file);
    while (!status && cli_field_next(&lists[0], &items[0]) && cli_field_next(&lists[1], &items[1]))
        status = count_task(c, &items[0], &items[1], why);
    for (size_t side = 0; side < 2; side++)
        c->n_only[side] = n[side] - base_min(n[0], n[1]);
    for (size_t s = 0; s < CLI_N_TASK_SCORES && !status; s++)
        c->tests[s] = eval_mcnemar(&c->counts[s]);
    return status;
}
