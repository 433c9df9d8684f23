/** Workers with a backend of this process: a scorer on each, which meets the run's rows in turn. */
#ifndef EVAL_RUN_LOCAL_H
#define EVAL_RUN_LOCAL_H

#include "eval/run/worker.h"

/** Worker i has models->backends[i]. Its open fails as eval_scorer_open does. */
extern const struct eval_worker_kind eval_worker_local;

/** How the scorer of such a worker is set up, without progress. */
struct eval_scorer_options eval_local_scorer(const struct eval_units *units,
                                             const struct eval_models *models,
                                             const struct eval_run_options *options);

#endif
