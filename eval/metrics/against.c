#include "eval/metrics/against.h"

#include <math.h>
#include <stdlib.h>

#include "base/arithmetic.h"
#include "base/array.h"

/* The probability beyond each side of an interval. */
static const double tail = 0.025;

struct eval_paired eval_paired_over(const double *x, size_t n)
{
    struct base_moments m = {0};
    for (size_t i = 0; i < n; i++)
        base_moments_add(&m, x[i]);
    const double none = (double)NAN;
    struct eval_paired p = {n, n ? base_moments_mean(&m) : none, none, none, none, none};
    if (n < 2)
        return p;
    p.spread = sqrt(m.spread / (double)(n - 1));
    p.error = p.spread / sqrt((double)n);
    p.half_width = p.error * base_student(n - 1, tail);
    p.z = p.value == 0 ? 0 : p.value / p.error;
    return p;
}

/* So many windows have an interval of their own, wider where they are few. */
static bool is_enough(const struct eval_paired *p, size_t n, double wanted)
{
    double error = p->spread / sqrt((double)n);
    return 2 * base_student(base_min(n, p->n) - 1, tail) * error <= wanted;
}

size_t eval_paired_needed(const struct eval_paired *p, double wanted)
{
    const double most = 1e15;
    if (p->n < 2)
        return 0;
    double root = 2 * base_student(p->n - 1, tail) * p->spread / wanted, least = ceil(root * root);
    if (!(least <= most))
        return 0;
    size_t n = base_max((size_t)least, 2);
    while (n < p->n && !is_enough(p, n, wanted))
        n++;
    return n;
}

const char *eval_against_name(enum eval_against_verdict verdict)
{
    static const char *const names[] = {"same bits", "no difference", "further", "closer",
                                        "undecided"};
    return names[verdict];
}

void eval_against_windows(double *out, size_t *n, const struct eval_table *a,
                          const struct eval_table *b, enum eval_column column)
{
    *n = 0;
    for (size_t w = 0; w < a->n_windows; w++) {
        if (!a->done[w] || !b->done[w])
            continue;
        double sum = 0;
        for (size_t i = 0; i < a->n_scored; i++)
            sum += eval_table_row(a, column, w)[i] - eval_table_row(b, column, w)[i];
        out[(*n)++] = sum / (double)a->n_scored;
    }
}

/** What the windows have in the bins of an axis: [n_windows][EVAL_AGAINST_MOST_BINS]. */
struct sums {
    double (*difference)[EVAL_AGAINST_MOST_BINS]; /* over the window's tokens, by its n_scored */
    double (*tokens)[EVAL_AGAINST_MOST_BINS];     /* its share of them */
    double *x;                                    /* [n_windows] */
    size_t n;                                     /* finished windows */
};

static void free_sums(struct sums *s)
{
    free(s->difference);
    free(s->tokens);
    free(s->x);
}

static enum status make_sums(struct sums *s, size_t n_windows, struct status_why *why)
{
    enum status status = base_array_new(s->difference, n_windows, "windows", why);
    if (!status)
        status = base_array_new(s->tokens, n_windows, "windows", why);
    return status ? status : base_array_new(s->x, n_windows, "windows", why);
}

static size_t bin_of(const struct eval_against_task *t, enum eval_against_axis axis, size_t n_bins,
                     size_t w, size_t i)
{
    if (axis == EVAL_AGAINST_POSITION)
        return i * n_bins / t->exact->n_scored;
    double at = exp(eval_table_row(t->a, EVAL_BASE_TOP, w)[i]) * (double)n_bins;
    return at > 0 ? base_min((size_t)fmin(at, (double)n_bins), n_bins - 1) : 0;
}

/* The first position of a bin is the first i with i * n_bins / n_scored = bin. */
static size_t bin_edge(enum eval_against_axis axis, size_t bin, size_t n_bins, size_t n_scored)
{
    return axis == EVAL_AGAINST_POSITION ? (bin * n_scored + n_bins - 1) / n_bins : bin;
}

/** Means of the bins, and what each window has in them. */
static void fill_bins(struct eval_against_bins *out, struct sums *s,
                      const struct eval_against_task *t, enum eval_against_axis axis)
{
    size_t n_scored = t->exact->n_scored, n = EVAL_AGAINST_MOST_BINS;
    if (axis == EVAL_AGAINST_POSITION)
        n = base_min(n_scored, EVAL_AGAINST_POSITION_BINS);
    *out = (struct eval_against_bins){.n = n};
    for (size_t k = 0; k < n; k++) {
        out->items[k].from = bin_edge(axis, k, n, n_scored);
        out->items[k].to = bin_edge(axis, k + 1, n, n_scored);
    }
    s->n = 0;
    for (size_t w = 0; w < t->exact->n_windows; w++) {
        if (!t->a->done[w] || !t->b->done[w])
            continue;
        const double *a = eval_table_row(t->a, EVAL_KL, w), *b = eval_table_row(t->b, EVAL_KL, w);
        for (size_t k = 0; k < n; k++)
            s->difference[s->n][k] = s->tokens[s->n][k] = 0;
        for (size_t i = 0; i < n_scored; i++) {
            size_t k = bin_of(t, axis, n, w, i);
            out->items[k].n_tokens++;
            out->items[k].a += a[i];
            out->items[k].b += b[i];
            s->difference[s->n][k] += (a[i] - b[i]) / (double)n_scored;
            s->tokens[s->n][k] += 1 / (double)n_scored;
        }
        s->n++;
    }
}

/**
 * The means of the bins. Windows have different numbers of tokens in a bin: the error is that of a
 * ratio, by what a window's difference is off from its tokens' share.
 */
static void finish_bins(struct eval_against_bins *bins, struct sums *s)
{
    size_t n_tokens = 0;
    for (size_t k = 0; k < bins->n; k++)
        n_tokens += bins->items[k].n_tokens;
    for (size_t k = 0; k < bins->n; k++) {
        struct eval_against_bin *bin = &bins->items[k];
        double n = (double)bin->n_tokens;
        if (!bin->n_tokens)
            continue;
        bin->a /= n;
        bin->b /= n;
        bin->difference.value = bin->a - bin->b;
        for (size_t w = 0; w < s->n; w++)
            s->x[w] = s->difference[w][k] - bin->difference.value * s->tokens[w][k];
        bin->difference.error = eval_paired_over(s->x, s->n).error * (double)n_tokens / n;
        bin->difference.lot_error = bin->difference.error; /* windows are lots */
    }
}

/** What bins from .. to - 1 have beyond the share of their tokens, over windows. */
static struct eval_paired excess(struct sums *s, double difference,
                                 const struct eval_against_place *p)
{
    for (size_t w = 0; w < s->n; w++) {
        s->x[w] = -difference * p->tokens;
        for (size_t k = p->from; k < p->to; k++)
            s->x[w] += s->difference[w][k];
    }
    return eval_paired_over(s->x, s->n);
}

/**
 * The run of bins that has most beyond the share of its tokens. It is told where that is above
 * twice the half width of a single run's, because it is the best of many, and where the run has
 * a third of the difference, and half as much again as its tokens would have.
 */
static void find_place(struct eval_against_bins *bins, struct sums *s, double difference)
{
    const double least = 1.0 / 3, more = 1.5;
    double n_tokens = 0, largest = 0;
    struct eval_against_place best = {0};
    for (size_t k = 0; k < bins->n; k++)
        n_tokens += (double)bins->items[k].n_tokens;
    for (size_t from = 0; from < bins->n; from++) {
        double own = 0, tokens = 0;
        for (size_t to = from + 1; to <= bins->n; to++) {
            const struct eval_against_bin *bin = &bins->items[to - 1];
            own += bin->difference.value * (double)bin->n_tokens / n_tokens;
            tokens += (double)bin->n_tokens / n_tokens;
            double beyond = own / difference - tokens;
            if (bin->n_tokens && bins->items[from].n_tokens && beyond > largest) {
                largest = beyond;
                best = (struct eval_against_place){false, from, to, own / difference, tokens};
            }
        }
    }
    struct eval_paired beyond = excess(s, difference, &best);
    best.found = fabs(beyond.value) > 2 * beyond.half_width && best.share >= least &&
                 best.share >= more * best.tokens;
    bins->place = best;
}

static enum eval_against_verdict judge(const struct eval_against_result *r,
                                       const struct eval_against_task *t)
{
    if (t->same_bits)
        return EVAL_AGAINST_SAME_BITS;
    if (isnan(r->kld.value) || isnan(r->resolution))
        return EVAL_AGAINST_UNDECIDED;
    if (fabs(r->kld.value) > r->resolution)
        return r->kld.value > 0 ? EVAL_AGAINST_FURTHER : EVAL_AGAINST_CLOSER;
    bool enough = isnan(t->resolve) || (r->n_needed && r->kld.n >= r->n_needed);
    bool coarse = fmax(t->rounding, t->noise) > t->resolve / 2; /* false where not known */
    return enough && !coarse ? EVAL_AGAINST_NO_DIFFERENCE : EVAL_AGAINST_UNDECIDED;
}

enum status eval_against(struct eval_against_result *out, const struct eval_against_task *t,
                         struct status_why *why)
{
    *out = (struct eval_against_result){0};
    struct sums s = {0};
    enum status status = make_sums(&s, t->exact->n_windows, why);
    size_t n;
    if (!status) {
        eval_against_windows(s.x, &n, t->a, t->b, EVAL_KL);
        out->kld = eval_paired_over(s.x, n);
        eval_against_windows(s.x, &n, t->b, t->a, EVAL_LOG_PROB);
        out->nll = eval_paired_over(s.x, n);
    }
    for (int axis = 0; axis < EVAL_AGAINST_AXES && !status; axis++) {
        fill_bins(&out->axes[axis], &s, t, (enum eval_against_axis)axis);
        finish_bins(&out->axes[axis], &s);
        if (out->kld.n > 1 && out->kld.value != 0)
            find_place(&out->axes[axis], &s, out->kld.value);
    }
    free_sums(&s);
    if (status)
        return status;
    out->resolution = isnan(out->kld.half_width) ? (double)NAN
                                                 : fmax(fmax(out->kld.half_width, t->noise),
                                                        fmax(t->resolve / 2, t->rounding));
    if (!isnan(t->resolve))
        out->n_needed = eval_paired_needed(&out->kld, t->resolve);
    out->verdict = judge(out, t);
    return STATUS_OK;
}
