/**
 * The budget of a recording: the divergence from exact that the roundings of its engine make of
 * this model, on the same windows. What a right recording has beyond its file's share is about
 * that, and it has much of the engine's rounding in common with the simulation of it.
 * docs/evidence.md has the measurements that the limits are from.
 */
#ifndef ACTIVATIONS_BUDGET_H
#define ACTIVATIONS_BUDGET_H

#include "clients/activations/rule.h"
#include "eval/input.h"
#include "eval/reference.h"
#include "model/model.h"

struct kern_backend;

/** Everything is borrowed. */
struct act_budget_task {
    const struct model *model;
    struct kern_backend *backend; /* of host memory; rounds nothing of the model */
    struct act_rule rule;         /* of the engine that is simulated */
    /* The model over its cache, whose products the backend rounds by the rule; NULL: the model's
       are rounded here, and its keys and values to F16 unless they are already. */
    const struct model *simulated;
    const struct eval_plan *plan;
    const struct eval_stream *stream;
    const struct eval_row_source *recorded; /* of that plan; of kind EVAL_ROWS_CODES, not cut */
    double reach;                           /* of its codes: eval_logits_reach() */
    double noise, noise_of_all;             /* as of struct act_budget */
};

/** Mean divergences in nats; those from a recording are beyond what the file's 16 bits make. */
struct act_budget {
    double kld;                /* KL(exact || simulated): the budget */
    double recorded;           /* KL(exact || recorded) */
    double simulated_recorded; /* KL(simulated || recorded) */
    /* What runs of the program differ by, each one's part, in these windows and in all; 0: it is
       not known. */
    double noise, noise_of_all;
    size_t n_windows, n_tokens;
};

/** How many windows are evaluated, the first ones: those of 500 scored tokens, 2 at least. */
size_t act_budget_windows(const struct eval_plan *plan);

/**
 * Evaluate them exactly, and as the engine rounds.
 * Fails: STATUS_UNSUPPORTED (a device's memory, an architecture's cache, a product that the engine
 *        has not), STATUS_MEMORY, STATUS_NONFINITE; as model_forward, kern_score and the source.
 * Cost: two forward passes of the windows, and the head eight times.
 */
enum status act_budget_measure(struct act_budget *out, const struct act_budget_task *task,
                               struct status_why *why);

/** The part of the rounding that recording and simulation have in common: 0 none, 1 all of it. */
double act_budget_shared(const struct act_budget *b);

/**
 * Whether nothing is rounded to 8 bits, nor to bfloat16: what is not simulated, as sums and
 * attention's products, then makes as much, and the shared part says nothing.
 */
bool act_budget_is_small(const struct act_budget *b);

/** How many times the budget right recordings have at most; below which part of it a recording is
    right whatever it shares, since its program rounds less. */
extern const double act_budget_slack, act_budget_close;

enum act_verdict {
    ACT_NO_BUDGET, /* the simulation rounds nothing to hold the recording to */
    ACT_NOISE,     /* beyond the budget, and by no more than the program's own noise */
    ACT_AGREES,
    ACT_OTHER_ROUNDING, /* as large as the budget, but not this model's, or not this engine's */
    ACT_DIFFERS         /* by more than the budget allows */
};
/** "cannot tell" of the first two, "agrees", "other rounding", "differs". */
const char *act_verdict_name(enum act_verdict verdict);
/** beyond: KL(exact || recorded) beyond the file of all windows of the recording. */
enum act_verdict act_budget_judge(const struct act_budget *b, double beyond);

#endif
