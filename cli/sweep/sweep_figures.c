/* The figures of a sweep, while it goes on and after it. */
#include <math.h>

#include "base/arithmetic.h"
#include "cli/sweep/sweep_evaluator.h"

/*
 * KLDs that rounding alone may make: ten times what another order of float32 sums makes, or twice
 * what the rounding of activations does (docs/sweep.md).
 */
static const double rounding_kld[] = {
    [CLI_PRECISION_EXACT] = 1e-11, [CLI_PRECISION_HIGH] = 5e-9, [CLI_PRECISION_FAST] = 1.5e-4};

size_t cli_sweep_whole_windows(const struct cli_sweep *s)
{
    const struct eval_trials *t = &s->trials;
    return base_min(t->units.n_finished / t->n_variants * t->batch_windows, t->plan->n_windows);
}

static struct cli_sweep_figures figures_of(const struct cli_sweep *s, size_t variant)
{
    struct cli_sweep_figures f = {.per_bit = (double)NAN};
    const struct eval_trial *trial = eval_trials_result(&s->trials, variant);
    if (!trial)
        return f;
    f.known = true;
    f.n_windows = trial->tally.n_windows;
    f.kld = eval_kld_tally_figures(&trial->tally);
    f.excess = base_moments_estimate(&trial->excess);
    if (!isfinite(f.kld.kld.value) || !isfinite(f.kld.log_ratio.value))
        f.doubt = CLI_SWEEP_NONFINITE;
    else if (fabs(f.excess.value) < rounding_kld[s->settings->evaluate.machine.precision])
        f.doubt = CLI_SWEEP_BELOW_ROUNDING;
    else if (fabs(f.excess.value) < 2 * base_estimate_error(f.excess))
        f.doubt = CLI_SWEEP_BELOW_ERROR;
    return f;
}

struct cli_sweep_figures cli_sweep_figures(const struct cli_sweep *s, size_t choice)
{
    const struct cli_sweep_choice *c = &s->groups.choices[choice];
    struct cli_sweep_figures f = figures_of(s, s->variant_of[choice]);
    double saved = (double)s->groups.items[c->group].n_bytes - (double)c->n_bytes;
    if (f.doubt != CLI_SWEEP_NONFINITE && c->odd)
        f.doubt = CLI_SWEEP_NO_VERSION;
    if (f.known && saved != 0)
        f.per_bit = f.excess.value / (8 * saved / (double)s->groups.n_weights);
    return f;
}

struct cli_sweep_figures cli_sweep_reference(const struct cli_sweep *s)
{
    struct cli_sweep_figures f = figures_of(s, 0);
    if (!s->around.model)
        f = (struct cli_sweep_figures){
            .known = f.known,
            .n_windows = f.n_windows,
            .kld = {.nll = f.kld.base_nll, .base_nll = f.kld.base_nll, .same_top = {1, 0}}};
    return f;
}

struct cli_sweep_together cli_sweep_together(const struct cli_sweep *s, size_t candidate)
{
    struct cli_sweep_together t = {0};
    for (size_t i = 0; i < s->groups.n_choices; i++) {
        struct cli_sweep_figures f = cli_sweep_figures(s, i);
        if (s->groups.choices[i].candidate != candidate || !f.known)
            continue;
        t.sum += f.excess.value;
        t.n_choices++;
    }
    if (s->together[candidate] != SIZE_MAX)
        t.figures = figures_of(s, s->together[candidate]);
    return t;
}
