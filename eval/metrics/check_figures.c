/* The figures of a check: sums over what its windows left behind. */
#include <math.h>

#include "eval/metrics/check.h"

/** A running mean square and maximum. */
struct spread {
    struct base_moments squares;
    double max;
};

static void add_difference(struct spread *s, double x)
{
    base_moments_add(&s->squares, x * x);
    s->max = fabs(x) > s->max ? fabs(x) : s->max;
}

static struct eval_check_nll summary_of(const struct spread *s)
{
    return (struct eval_check_nll){sqrt(base_moments_mean(&s->squares)), s->max};
}

enum status eval_check_summarise(struct eval_check_result *out, const struct eval_check *c,
                                 const struct eval_table tables[2], size_t n_worst,
                                 struct status_why *why)
{
    *out = (struct eval_check_result){0};
    const struct eval_check_task *task = eval_check_task(c);
    struct eval_kld_tables pair = {task->plan, task->stream, &tables[0], &tables[1]};
    enum status status = eval_kld(&out->kld, &pair, n_worst, why);
    if (status)
        return status;
    struct spread nll = {0}, floor_nll = {0};
    struct base_moments floor = {0}, nll_beyond = {0};
    for (size_t w = 0; w < tables[0].n_windows; w++) {
        if (!tables[0].done[w])
            continue;
        const double *exact = eval_table_row(&tables[0], EVAL_LOG_PROB, w);
        const double *recorded = eval_table_row(&tables[1], EVAL_LOG_PROB, w);
        base_moments_lot(&floor, w);
        base_moments_lot(&nll_beyond, w);
        for (size_t i = 0; i < tables[0].n_scored; i++) {
            struct eval_check_floor of_token = eval_check_floor_of(c, w, i);
            add_difference(&nll, exact[i] - recorded[i]);
            add_difference(&floor_nll, of_token.nll);
            base_moments_add(&nll_beyond, exact[i] - recorded[i] - of_token.nll);
            base_moments_add(&floor, of_token.kld);
            out->floor_max = of_token.kld > out->floor_max ? of_token.kld : out->floor_max;
        }
    }
    out->nll = summary_of(&nll);
    out->floor_nll = summary_of(&floor_nll);
    out->floor = base_moments_estimate(&floor);
    out->nll_beyond = base_moments_estimate(&nll_beyond);
    double mean = out->kld.figures.kld.value;
    out->beyond = mean - out->floor.value;
    out->share = mean > 0 ? out->floor.value / mean : (double)NAN;
    return STATUS_OK;
}

void eval_check_result_free(struct eval_check_result *result)
{
    eval_kld_free(&result->kld);
    *result = (struct eval_check_result){0};
}
