/* How far the rounding of the products themselves may have moved a divergence. */
#include <math.h>

#include "cli/kld/kld_evaluator.h"
#include "kernels/kernels.h"

/* A recording of another precision has errors of its own. */
static bool base_is_as_precise(const struct cli_kld *k)
{
    if (!cli_base_has_rows(&k->base))
        return true;
    const char *recorded = cli_description_precision(&k->base.description);
    const char *name = cli_precision_name(k->settings->evaluate.machine.precision);
    return recorded && strcmp(recorded, name) == 0;
}

static double rounding_of(const char *products, struct cli_model_size size)
{
    const double least_bits = 16;
    return eval_rounding_of(products, size.bits_per_weight >= least_bits);
}

/*
 * The size of a base-logits file is not known; its codes of 16 bits are another matter. Where
 * inputs are rounded anyway, an error of any size makes other codes: of the mean nothing is known.
 */
double cli_kld_rounding(const struct cli_kld *k, size_t i)
{
    const struct cli_base *base = &k->base;
    if (!base->kind->size || !base_is_as_precise(k) || k->settings->evaluate.machine.activations)
        return (double)NAN;
    const char *products = kern_describe(k->e.backends.items[0]).products;
    double own = rounding_of(products, base->kind->size(base)) +
                 rounding_of(products, cli_model_size(&k->candidates[i]));
    const struct eval_kld_result *r = &k->results[i];
    return eval_kld_rounding(r->figures.kld.value, r->n_tokens, own);
}
