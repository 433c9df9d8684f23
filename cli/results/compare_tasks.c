/* Choice tasks: who was right about which, by each of the three scores. */
#include "cli/results/compare.h"

const char *const cli_task_scores[CLI_N_TASK_SCORES] = {"score", "acc", "acc_norm"};

static const char *const choice_fields[CLI_N_TASK_SCORES] = {"choice", "choice_acc",
                                                             "choice_acc_norm"};

static enum status is_right(bool *right, const struct cli_field *task, size_t score,
                            struct status_why *why)
{
    size_t answer, choice;
    enum status status = cli_field_count(&answer, task, "answer", why);
    if (status == STATUS_OK)
        status = cli_field_count(&choice, task, choice_fields[score], why);
    *right = status == STATUS_OK && choice == answer;
    return status;
}

static enum status count_task(struct cli_compare *c, const struct cli_field *a,
                              const struct cli_field *b, struct status_why *why)
{
    enum status status = cli_fields_equal(a, b, "task", NULL, why);
    if (status == STATUS_OK)
        status = cli_fields_equal(a, b, "answer", NULL, why);
    for (size_t s = 0; s < CLI_N_TASK_SCORES && status == STATUS_OK; s++) {
        bool right_a, right_b = false;
        status = is_right(&right_a, a, s, why);
        if (status == STATUS_OK)
            status = is_right(&right_b, b, s, why);
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
    enum status status = STATUS_OK;
    for (size_t side = 0; side < 2 && status == STATUS_OK; side++) {
        struct cli_field root = cli_document_root(&c->sides[side].result);
        status = cli_field_list(&lists[side], &n[side], &root, "tasks", why);
        if (status == STATUS_OK)
            status = cli_field_text(&c->task_kind, &root, "kind", why);
    }
    if (status != STATUS_OK)
        return status;
    if (n[0] == 0 || n[1] == 0)
        return status_fail(why, STATUS_USAGE, "%s has no tasks", c->sides[n[0] != 0].result.file);
    while (status == STATUS_OK && cli_field_next(&lists[0], &items[0]) &&
           cli_field_next(&lists[1], &items[1]))
        status = count_task(c, &items[0], &items[1], why);
    for (size_t side = 0; side < 2; side++)
        c->n_only[side] = n[side] - (n[0] < n[1] ? n[0] : n[1]);
    for (size_t s = 0; s < CLI_N_TASK_SCORES && status == STATUS_OK; s++)
        c->tests[s] = eval_mcnemar(&c->counts[s]);
    return status;
}
