#include "clients/probe/bounds.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/arithmetic.h"
#include "base/array.h"

/* Numbers of servers have some digits: what is left of 1 is known to about that much. */
static const double mass_error = 1e-6;

/** The smallest value of r ln(r / q) for r up to `most`. */
static double least_of_rest(double most, double q)
{
    double r = fmin(most, q / exp(1));
    return r > 0 ? r * log(r / q) : 0;
}

/** The largest logarithm that a token of the rest can have. */
static double cap_of(const struct probe_listed *l, double log_rest)
{
    double least = (double)INFINITY, second = (double)INFINITY;
    for (size_t i = 0; i < l->n; i++) {
        double x = l->log_p[i];
        second = fmin(second, fmax(x, least));
        least = fmin(least, x);
    }
    /* One that is listed may be there because it came next, and be less likely than the rest. */
    double cap = l->merged || !isfinite(second) ? 0 : fmax(second, l->dropped);
    return fmin(cap, log_rest);
}

struct probe_bound probe_bound_of(const struct probe_listed *l)
{
    double p_mass = 0, q_mass = 0, shared = 0;
    size_t top_p = 0, top_q = 0;
    for (size_t i = 0; i < l->n; i++) {
        p_mass += exp(l->log_p[i]);
        q_mass += exp(l->log_q[i]);
        top_p = l->log_p[i] > l->log_p[top_p] ? i : top_p;
        top_q = l->log_q[i] > l->log_q[top_q] ? i : top_q;
    }
    double scale = fmax(p_mass, 1); /* by rounding */
    for (size_t i = 0; i < l->n; i++) {
        double p = exp(l->log_p[i]) / scale;
        shared += p > 0 ? p * (l->log_p[i] - log(scale) - l->log_q[i]) : 0;
    }
    struct probe_bound b = {.least = shared, .most = shared, .p_mass = fmin(p_mass, 1)};
    bool has_rest = isfinite(l->unlisted.least);
    if (has_rest) {
        double p = 1 - b.p_mass, q = fmax(1 - q_mass, exp(l->unlisted.most));
        double large = fmax(p, mass_error), log_rest = log(large);
        b.least += p > mass_error ? p * log(p / q) : least_of_rest(mass_error, q);
        b.most += large * (cap_of(l, log_rest) - l->unlisted.least);
    }
    b.least = fmax(b.least, 0);
    b.most = fmax(b.most, b.least);
    b.top_known = l->merged ? !isfinite(l->dropped) : l->dropped < l->log_p[top_p];
    b.same_top = l->log_q[top_p] >= l->log_q[top_q] && l->log_q[top_p] >= l->unlisted.most;
    return b;
}

static int by_place(const void *a, const void *b)
{
    const struct probe_sample *x = a, *y = b;
    if (x->window != y->window)
        return (x->window > y->window) - (x->window < y->window);
    if (x->position != y->position)
        return (x->position > y->position) - (x->position < y->position);
    return (x->first > y->first) - (x->first < y->first); /* as they came */
}

/** What a list's values are too low by, where its tail was counted twice: ln(1 + tail). */
static double lowered_by(double mass)
{
    return log(2) - log1p(mass);
}

static double mass_of(const struct probe_lists *l, const struct probe_sample *s)
{
    double mass = 0;
    for (size_t i = 0; i < s->n; i++)
        mass += exp(l->log_q[s->first + i]);
    return mass;
}

static double top_of(const struct probe_lists *l, const struct probe_sample *s)
{
    double top = -(double)INFINITY;
    for (size_t i = 0; i < s->n; i++)
        top = fmax(top, l->log_q[s->first + i]);
    return top;
}

/** Whether two lists of a place differ as those that count their tails twice. */
static bool differ_by_tails(const struct probe_lists *l, const struct probe_sample *a,
                            const struct probe_sample *b)
{
    const double least = 0.01, near = 0.1; /* nats; of what is expected */
    double found = top_of(l, a) - top_of(l, b);
    double expected = lowered_by(mass_of(l, b)) - lowered_by(mass_of(l, a));
    return a->window == b->window && a->position == b->position && a->n != b->n &&
           fabs(expected) > least && fabs(found - expected) < near * fabs(expected);
}

static void mend_tails(struct probe_base *base)
{
    struct probe_lists *l = base->lists;
    for (size_t i = 1; i < l->n; i++)
        base->tail_twice |= differ_by_tails(l, &l->items[i - 1], &l->items[i]);
    for (size_t i = 0; i < l->n && base->tail_twice; i++) {
        double lowered = lowered_by(mass_of(l, &l->items[i]));
        for (size_t k = 0; k < l->items[i].n; k++)
            l->log_q[l->items[i].first + k] += lowered;
    }
}

void probe_base_settle(struct probe_base *base)
{
    struct probe_lists *l = base->lists;
    size_t n = 0;
    if (l->n)
        qsort(l->items, l->n, sizeof *l->items, by_place);
    mend_tails(base);
    for (size_t i = 0; i < l->n; i++) {
        assert(l->items);
        const struct probe_sample *s = &l->items[i], *last = n ? &l->items[n - 1] : NULL;
        double mass = mass_of(l, s);
        bool again = last && last->window == s->window && last->position == s->position;
        if (s->miscounted)
            base->n_miscounted++;
        else if (2 * s->position < s->length)
            base->n_early++;
        else if (again)
            base->n_again++;
        else if (mass > PROBE_MOST_MASS)
            probe_lists_spoil(l, "a prompt of %zu tokens: the probabilities of a list sum to %.4f",
                              s->length, mass);
        else {
            base->n_windows += !last || last->window != s->window;
            l->items[n++] = *s;
        }
    }
    l->n = n;
}

/** Sums at work. */
struct sums {
    struct base_moments least, most, same_top, nll, mass;
    double *all; /* [n] of `least` */
};

static void add(struct sums *sums, const struct probe_pass *pass, const struct probe_sample *s,
                const double *values, struct probe_unlisted unlisted)
{
    const struct probe_lists *l = pass->lists;
    const struct model_tokens *tokens = &pass->windows[s->window].tokens;
    const struct probe_listed listed = {.log_p = l->log_q +
                                                 s->first, /* the server's, which is the base */
                                        .log_q = values + s->first,
                                        .n = s->n,
                                        .unlisted = unlisted,
                                        .dropped = s->dropped,
                                        .merged = s->merged};
    struct probe_bound b = probe_bound_of(&listed);
    struct base_moments *const all[] = {&sums->least, &sums->most, &sums->same_top, &sums->nll};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        base_moments_lot(all[i], s->window);
    sums->all[sums->least.n] = b.least;
    base_moments_add(&sums->least, b.least);
    base_moments_add(&sums->most, b.most);
    base_moments_add(&sums->mass, b.p_mass);
    if (b.top_known)
        base_moments_add(&sums->same_top, b.same_top);
    for (size_t k = 0; k < s->n && s->position < tokens->n; k++)
        if (l->ids[s->first + k] == tokens->ids[s->position])
            base_moments_add(&sums->nll, listed.log_p[k] - listed.log_q[k]);
}

enum status probe_base_compare(struct probe_bounds *out, const struct probe_pass *pass,
                               struct status_why *why)
{
    const struct probe_lists *l = pass->lists;
    double *values = NULL;
    struct probe_unlisted *unlisted = NULL;
    struct sums sums = {.all = NULL};
    enum status status = base_array_new(values, l->n_entries, "values", why);
    if (!status)
        status = base_array_new(unlisted, l->n, "lists", why);
    if (!status)
        status = base_array_new(sums.all, l->n, "lists", why);
    if (!status)
        status = probe_pass_run(pass, values, unlisted, why);
    for (size_t i = 0; i < l->n && !status; i++)
        add(&sums, pass, &l->items[i], values, unlisted[i]);
    *out = (struct probe_bounds){.n = sums.least.n, .n_top = sums.same_top.n, .n_next = sums.nll.n};
    out->least = base_moments_estimate(&sums.least);
    out->most = base_moments_estimate(&sums.most);
    out->same_top = base_moments_estimate(&sums.same_top);
    out->nll_difference = base_moments_estimate(&sums.nll);
    out->p_mass = base_moments_mean(&sums.mass);
    if (!status)
        base_sort(sums.all, out->n);
    for (size_t i = 0; i < EVAL_N_QUANTILES && !status; i++)
        out->quantiles[i] = base_quantile(sums.all, out->n, eval_quantile_levels[i]);
    free(values);
    free(unlisted);
    free(sums.all);
    return status;
}
