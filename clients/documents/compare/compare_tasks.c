/* Choice tasks: which of both was right about which task, by each of the three scores. */
#include "base/arithmetic.h"
#include "clients/documents/compare/compare.h"

const char *const doc_task_scores[DOC_N_TASK_SCORES] = {"score", "acc", "acc_norm"};

static const char *const choice_fields[DOC_N_TASK_SCORES] = {"choice", "choice_acc",
                                                             "choice_acc_norm"};

static bool is_right(struct base_field task, size_t score)
{
    size_t choice = doc_count(task, choice_fields[score]);
    if (base_field_find(task, "n_right").json) /* TruthfulQA's MC2: the first ones are */
        return choice < doc_count(task, "n_right");
    return doc_count(task, "answer") == choice;
}

/* Where a score is not finite nothing was chosen. */
static enum status check_finite(struct base_field task, struct status_why *why)
{
    struct base_field choice = base_field_need(task, choice_fields[0]);
    if (cJSON_IsNull(choice.json))
        base_field_fail(choice, STATUS_NONFINITE,
                        "is null, a score is not finite: there is nothing to compare");
    return base_json_status(task.reader, why);
}

static enum status count_task(struct doc_compare *c, struct base_field a, struct base_field b,
                              struct status_why *why)
{
    enum status status = doc_equal(a, b, "task answer", NULL, why);
    if (!status)
        status = check_finite(a, why);
    if (!status)
        status = check_finite(b, why);
    for (size_t s = 0; s < DOC_N_TASK_SCORES && !status; s++) {
        bool right_a = is_right(a, s), right_b = is_right(b, s);
        status = doc_compare_status(c, why);
        if (status)
            return status;
        struct doc_pair_counts *counts = &c->counts[s];
        if (right_a)
            *(right_b ? &counts->both : &counts->only_a) += 1;
        else
            *(right_b ? &counts->only_b : &counts->neither) += 1;
    }
    c->n_tasks++;
    return status;
}

enum status doc_compare_tasks(struct doc_compare *c, struct status_why *why)
{
    struct base_field lists[2], items[2] = {{0}};
    size_t n[2] = {0};
    for (size_t side = 0; side < 2; side++) {
        struct base_field root = doc_root(&c->sides[side].document);
        lists[side] = doc_list(&n[side], root, "tasks");
        c->task_kind = base_field_text(root, "kind");
    }
    enum status status = doc_compare_status(c, why);
    if (status)
        return status;
    if (n[0] == 0 || n[1] == 0)
        return status_fail(why, STATUS_USAGE, "%s has no tasks",
                           c->sides[n[0] != 0].document.json.file);
    while (!status && base_field_next(lists[0], &items[0]) && base_field_next(lists[1], &items[1]))
        status = count_task(c, items[0], items[1], why);
    for (size_t side = 0; side < 2; side++)
        c->n_only[side] = n[side] - base_min(n[0], n[1]);
    for (size_t s = 0; s < DOC_N_TASK_SCORES && !status; s++)
        c->tests[s] = doc_mcnemar(&c->counts[s]);
    return status;
}
