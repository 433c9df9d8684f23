#include "clients/documents/compare/paired.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/moments.h"
#include "base/random.h"

/**
 * Two-sided: twice the probability of at most m of n at 1/2, where m <= n / 2. The sum goes
 * down from its largest term, each later one k / (n - k + 1) of the one before.
 */
static double binomial_p(size_t m, size_t n)
{
    double first = exp(lgamma((double)n + 1) - lgamma((double)m + 1) - lgamma((double)(n - m) + 1) -
                       (double)n * log(2));
    double sum = 0, term = 1;
    for (size_t k = m;; k--) {
        sum += term;
        if (k == 0 || term < 1e-20 * sum)
            break;
        term *= (double)k / (double)(n - k + 1);
    }
    return fmin(1, 2 * first * sum);
}

struct doc_mcnemar doc_mcnemar(const struct doc_pair_counts *c)
{
    struct doc_mcnemar m = {.exact_p = 1, .chi_square_p = 1};
    size_t n = c->both + c->only_a + c->only_b + c->neither;
    size_t n_differ = c->only_a + c->only_b;
    if (n_differ == 0)
        return m;
    double gain = (double)c->only_b - (double)c->only_a;
    m.difference = gain / (double)n;
    if (n > 1)
        m.error = sqrt(fmax(0, (double)n_differ / (double)n - m.difference * m.difference) /
                       (double)(n - 1));
    m.exact_p = binomial_p(c->only_a < c->only_b ? c->only_a : c->only_b, n_differ);
    double beyond = fmax(0, fabs(gain) - 1);
    m.chi_square = beyond * beyond / (double)n_differ;
    m.chi_square_p = erfc(sqrt(m.chi_square / 2));
    return m;
}

/** What a resample is computed with. */
struct room {
    size_t *windows;     /* [n_windows] the ones drawn */
    double *means;       /* [n_sums]; the rest lies after it */
    double *figures[2];  /* [n_figures] of A and B */
    double *differences; /* [n_figures][n_resamples] */
};

static void free_room(struct room *r)
{
    free(r->windows);
    free(r->means);
}

static enum status make_room(struct room *r, const struct doc_pair *p, struct status_why *why)
{
    *r = (struct room){.windows = malloc(p->n_windows * sizeof *r->windows)};
    size_t n = p->n_sums + 2 * p->n_figures;
    if (p->n_resamples <= (SIZE_MAX / sizeof(double) - n) / p->n_figures)
        r->means = malloc((n + p->n_figures * p->n_resamples) * sizeof(double));
    if (!r->windows || !r->means) {
        free_room(r);
        return status_fail(why, STATUS_MEMORY, "no memory for %zu resamples of %zu windows",
                           p->n_resamples, p->n_windows);
    }
    r->figures[0] = r->means + p->n_sums;
    r->figures[1] = r->figures[0] + p->n_figures;
    r->differences = r->figures[1] + p->n_figures;
    return STATUS_OK;
}

/** The figures of both results over the windows drawn, in the order drawn. */
static void compute(struct room *r, const struct doc_pair *p)
{
    double n_tokens = 0;
    for (size_t i = 0; i < p->n_windows; i++)
        n_tokens += p->n_tokens[r->windows[i]];
    for (int side = 0; side < 2; side++) {
        for (size_t k = 0; k < p->n_sums; k++) {
            double sum = 0;
            for (size_t i = 0; i < p->n_windows; i++)
                sum += p->sums[side][r->windows[i] * p->n_sums + k];
            r->means[k] = sum / n_tokens;
        }
        p->figures(r->figures[side], r->means);
    }
}

static void summarise(struct doc_pair_figure *out, double *differences, size_t n)
{
    struct base_moments moments = {0};
    for (size_t r = 0; r < n; r++)
        base_moments_add(&moments, differences[r]);
    out->error = n > 1 ? sqrt(moments.spread / (double)(n - 1)) : 0;
    base_sort(differences, n);
    out->low = base_quantile(differences, n, 0.025);
    out->high = base_quantile(differences, n, 0.975);
}

enum status doc_pair_bootstrap(struct doc_pair_figure *out, const struct doc_pair *p,
                               struct status_why *why)
{
    assert(p->n_windows >= 2 && p->n_windows <= UINT32_MAX && p->n_resamples >= 1);
    struct room room;
    enum status status = make_room(&room, p, why);
    if (status)
        return status;
    for (size_t w = 0; w < p->n_windows; w++)
        room.windows[w] = w;
    compute(&room, p);
    for (size_t k = 0; k < p->n_figures; k++) {
        double a = room.figures[0][k], b = room.figures[1][k];
        out[k] = (struct doc_pair_figure){.a = a, .b = b, .difference = b - a};
    }

    struct base_twister twister;
    base_twister_seed(&twister, p->seed);
    for (size_t r = 0; r < p->n_resamples; r++) {
        for (size_t w = 0; w < p->n_windows; w++)
            room.windows[w] = base_twister_below(&twister, (uint32_t)p->n_windows);
        compute(&room, p);
        for (size_t k = 0; k < p->n_figures; k++)
            room.differences[k * p->n_resamples + r] = room.figures[1][k] - room.figures[0][k];
    }
    for (size_t k = 0; k < p->n_figures; k++)
        summarise(&out[k], room.differences + k * p->n_resamples, p->n_resamples);
    free_room(&room);
    return STATUS_OK;
}
