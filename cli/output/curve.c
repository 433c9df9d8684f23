#include "cli/output/curve.h"

#include <math.h>
#include <stdio.h>

#include "base/arithmetic.h"
#include "base/text/printable.h"
#include "eval/metrics.h"

enum { DEFAULT_BINS = 16 };

static void print_bin(const struct eval_plan *plan, const struct eval_table *table, size_t from,
                      size_t to)
{
    struct base_estimate nll = eval_curve_bin(table, EVAL_LOG_PROB, from, to);
    double ppl = exp(-nll.value), error = base_estimate_error(nll);
    printf("%zu-%zu\t", plan->first_scored + from, plan->first_scored + to - 1);
    if (isinf(ppl))
        printf("exp(%.4f)\t-", -nll.value);
    else
        printf("%.4f\t%.4f", base_unsigned_nan(ppl), base_unsigned_nan(ppl * error));
    printf("\t%.6f\t%.6f", base_shown(-nll.value, 6), base_unsigned_nan(error));
}

void cli_curve_print(const struct cli_curve_settings *settings, const struct eval_plan *plan,
                     const struct eval_table *table, bool divergence)
{
    size_t n = plan->n_scored;
    size_t n_bins = base_min(n, settings->n_bins ? (size_t)settings->n_bins : DEFAULT_BINS);
    printf("\npositions\tppl\tppl_error\tnll\tnll_error%s\n", divergence ? "\tkld\tkld_error" : "");
    for (size_t b = 0; b < n_bins; b++) {
        size_t from = b * n / n_bins, to = (b + 1) * n / n_bins;
        print_bin(plan, table, from, to);
        if (divergence) {
            struct base_estimate kld = eval_curve_bin(table, EVAL_KL, from, to);
            printf("\t%.5g\t%.2g", base_unsigned_nan(kld.value),
                   base_unsigned_nan(base_estimate_error(kld)));
        }
        putchar('\n');
    }
}
