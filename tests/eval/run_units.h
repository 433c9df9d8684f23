/** Units of any kind through one model on one backend. */
#ifndef TESTS_EVAL_RUN_UNITS_H
#define TESTS_EVAL_RUN_UNITS_H

#include "eval/run/run.h"

static inline enum status run_units(struct eval_units *units, const struct model *by,
                                    struct kern_backend *on, size_t batch_tokens,
                                    struct eval_run_stats *stats, struct status_why *why)
{
    struct eval_models models = {.model = by, .backends = &on, .n_backends = 1};
    struct eval_run_options options = {0};
    enum status status = eval_run_prepare(units, &models, batch_tokens, why);
    return status ? status : eval_run(units, &models, &options, stats, why);
}

#endif
