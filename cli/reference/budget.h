/** The budget of a recording, as commands measure it and tell of it. */
#ifndef CLI_REFERENCE_BUDGET_H
#define CLI_REFERENCE_BUDGET_H

#include "cli/reference/base.h"
#include "clients/activations/budget.h"

/** Zero-initialise. */
struct cli_budget {
    const char *recorded, *model; /* their names, borrowed */
    struct act_rule rule;
    struct act_budget figures;
    double beyond; /* as of the task */
    enum act_verdict verdict;
    struct status_why why_not; /* it is not measured; "": it is */
};

/** What a budget is measured of. Everything is borrowed. */
struct cli_budget_task {
    const struct cli_base *recorded; /* a base-logits file, in use for the windows */
    const struct cli_model *model;
    const struct model *simulated;      /* as of struct act_budget_task, with the rule, or NULL */
    const struct act_rule *activations; /* NULL: llama.cpp on a CPU */
    const struct cli_evaluation *e;     /* its first backend computes */
    const struct cli_windows *windows;
    bool complete;              /* the run before was whole; else nothing is measured */
    double beyond;              /* as act_budget_judge has it; NaN: not known */
    double noise, noise_of_all; /* as of struct act_budget_task */
};

/**
 * Measure it, unless it makes no sense: the verdict is then ACT_NO_BUDGET, and why_not says why.
 * Fails: as act_budget_measure, but for STATUS_UNSUPPORTED and STATUS_CANCELLED.
 */
enum status cli_budget_measure(struct cli_budget *out, const struct cli_budget_task *task,
                               struct status_why *why);

/** How many passes over a window it takes, beforehand; 0 where it is not measured. */
size_t cli_budget_passes(const struct cli_evaluation *e, const struct eval_plan *plan);

/** The verdict, a sentence without a full stop; made printable. */
enum { CLI_BUDGET_BYTES = 2048 };
const char *cli_budget_sentence(char out[CLI_BUDGET_BYTES], const struct cli_budget *b);
/** Lines of the figures, if it was measured. */
void cli_budget_print(const struct cli_budget *b);
/** The object `budget`. */
void cli_budget_add_json(struct base_json *json, cJSON *parent, const struct cli_budget *b);

#endif
