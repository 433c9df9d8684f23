/**
 * What the roundings of a correct program cost a model's predictions: the divergence of an
 * evaluation that rounds (trace/rounded.h) from the exact one, measured on some windows.
 */
#ifndef TRACE_BUDGET_H
#define TRACE_BUDGET_H

#include "eval/input.h"
#include "model/model.h"

/** Everything is borrowed. */
struct trace_budget_task {
    const struct model *model;
    struct kern_backend *backend; /* of host memory */
    const struct eval_plan *plan;
    const struct eval_stream *stream;
    size_t n_windows; /* the first ones of the plan; at least 1 */
    size_t n_passes;  /* that round, of each window; at least 1 */
};

/**
 * *kld: mean KL(exact || rounded) over the scored positions of the windows, in nats. The same
 * numbers for the same task.
 * Fails: STATUS_USAGE (a device's memory), as model_session_open, model_forward, kern_score.
 * Cost: 1 + n_passes forward passes of n_windows windows.
 */
enum status trace_budget(double *kld, const struct trace_budget_task *task, struct status_why *why);

#endif
