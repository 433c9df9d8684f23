#include "eval/metrics/kld.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

const double eval_quantile_levels[EVAL_N_QUANTILES] = {1,    0.999, 0.99, 0.95, 0.9,   0.75, 0.5,
                                                       0.25, 0.1,   0.05, 0.01, 0.001, 0};

static const double *row(const struct eval_table *table, enum eval_column column, size_t w)
{
    return eval_table_row(table, column, w);
}

static double square(double x)
{
    return x * x;
}

/** q - p of the right token. */
static double delta_p(const struct eval_kld_tables *t, size_t w, size_t i)
{
    return exp(row(t->candidate, EVAL_LOG_PROB, w)[i]) - exp(row(t->base, EVAL_LOG_PROB, w)[i]);
}

void eval_kld_tally_token(struct eval_kld_tally *tally, const struct eval_kld_token *t)
{
    double dp = exp(t->log_q) - exp(t->log_p), from_mean = -t->log_q - tally->nll.mean;
    base_moments_add(&tally->nll, -t->log_q);
    base_moments_add(&tally->base_nll, -t->log_p);
    tally->cross += from_mean * (-t->log_p - tally->base_nll.mean);
    base_moments_add(&tally->log_ratio, t->log_p - t->log_q);
    base_moments_add(&tally->kld, t->kl);
    base_moments_add(&tally->dp, dp);
    base_moments_add(&tally->dp_squared, square(dp));
    base_moments_add(&tally->same_top, t->same_top);
}

void eval_kld_tally_lot(struct eval_kld_tally *tally, size_t lot)
{
    struct base_moments *const all[] = {&tally->nll,     &tally->base_nll, &tally->log_ratio,
                                        &tally->kld,     &tally->dp,       &tally->dp_squared,
                                        &tally->same_top};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        base_moments_lot(all[i], lot);
}

void eval_kld_tally_add(struct eval_kld_tally *tally, const struct eval_kld_tables *t, size_t w)
{
    size_t n_scored = eval_table_n(t->base, w);
    eval_kld_tally_lot(tally, eval_table_lot(t->base, w));
    for (size_t i = 0; i < n_scored; i++)
        eval_kld_tally_token(
            tally, &(struct eval_kld_token){.log_p = row(t->base, EVAL_LOG_PROB, w)[i],
                                            .log_q = row(t->candidate, EVAL_LOG_PROB, w)[i],
                                            .kl = row(t->candidate, EVAL_KL, w)[i],
                                            .same_top = row(t->candidate, EVAL_SAME_TOP, w)[i]});
    tally->n_windows++;
}

struct eval_kld_sums eval_kld_window_sums(const struct eval_kld_tables *t, size_t w)
{
    struct eval_kld_tally one = {0};
    eval_kld_tally_add(&one, t, w);
    return (struct eval_kld_sums){one.nll.n,  one.nll.sum,        one.kld.sum,
                                  one.dp.sum, one.dp_squared.sum, one.same_top.sum};
}

static struct base_estimate exp_of(struct base_estimate x)
{
    double value = exp(x.value);
    return (struct base_estimate){value, value * x.error, value * x.lot_error};
}

/** A root of what rounding may leave below 0; NaN stays. */
static double root(double x)
{
    return x < 0 ? 0 : sqrt(x);
}

/** The share of ones and sqrt(f (1 - f) / (n - 1)). */
static struct base_estimate share_of(const struct base_moments *m)
{
    double f = base_moments_mean(m);
    return (struct base_estimate){f, m->n > 1 ? root(f * (1 - f) / (double)(m->n - 1)) : 0,
                                  sqrt(base_moments_lot_variance(m))};
}

/** The error of a q - b p where q and p have these variances and this covariance. */
static double difference_error(struct base_estimate q, struct base_estimate p, double q_variance,
                               double p_variance, double covariance)
{
    double larger = fmax(q.value, p.value);
    double unit = larger > 1e150 ? larger : 1; /* whose square is still a number */
    double a = q.value / unit, b = p.value / unit;
    return unit * root(square(a) * q_variance + square(b) * p_variance - 2 * (a * b) * covariance);
}

struct eval_kld_figures eval_kld_tally_figures(const struct eval_kld_tally *t)
{
    struct eval_kld_figures f = {
        .nll = base_moments_estimate(&t->nll),
        .base_nll = base_moments_estimate(&t->base_nll),
        .log_ratio = base_moments_estimate(&t->log_ratio),
        .kld = base_moments_estimate(&t->kld),
        .dp = base_moments_estimate(&t->dp),
        .same_top = share_of(&t->same_top),
        .correlation = 1,
    };
    f.ppl = exp_of(f.nll);
    f.base_ppl = exp_of(f.base_nll);
    f.ratio = exp_of(f.log_ratio);
    double n = (double)t->nll.n;
    double q = base_moments_variance(&t->nll), p = base_moments_variance(&t->base_nll);
    double covariance = q > 0 || p > 0 ? t->cross / n / (n - 1) : 0;
    if (q > 0 && p > 0)
        f.correlation = covariance / sqrt(q * p);
    else if (!(q == 0 && p == 0)) /* one of them does not vary, or is no number */
        f.correlation = q == 0 || p == 0 ? 0 : (double)NAN;
    f.difference.value = f.ppl.value - f.base_ppl.value;
    f.difference.error = difference_error(f.ppl, f.base_ppl, q, p, covariance);
    q = square(f.nll.lot_error), p = square(f.base_nll.lot_error);
    covariance = (q + p - square(f.log_ratio.lot_error)) / 2;
    f.difference.lot_error = difference_error(f.ppl, f.base_ppl, q, p, covariance);
    struct base_estimate squared = base_moments_estimate(&t->dp_squared);
    double slope = squared.value > 0 ? 0.5 / sqrt(squared.value) : 0;
    f.rms_dp = (struct base_estimate){sqrt(squared.value), slope * squared.error,
                                      slope * squared.lot_error};
    return f;
}

/** Room for one double of each scored token. */
struct sorter {
    double *values;
    size_t n;
};

/** A quantity whose quantiles are told. */
typedef double quantity(const struct eval_kld_tables *t, size_t w, size_t i);

static double kl_of(const struct eval_kld_tables *t, size_t w, size_t i)
{
    return row(t->candidate, EVAL_KL, w)[i];
}

/** Half of what a quantile changes where its level is off by one standard error, both ways. */
static double quantile_error(const struct sorter *sorter, double level, double level_error)
{
    double high = base_quantile(sorter->values, sorter->n, fmin(1, level + level_error));
    double low = base_quantile(sorter->values, sorter->n, fmax(0, level - level_error));
    return level_error > 0 ? (high - low) / 2 : 0;
}

/** A quantile with its errors, by those of the share of values below it (Woodruff 1952). */
static struct base_estimate quantile_of(const struct eval_kld_tables *t, quantity *of,
                                        const struct sorter *sorter, double level)
{
    struct base_estimate x = {base_quantile(sorter->values, sorter->n, level), (double)NAN, 0};
    struct base_moments below = {0};
    if (level == 0 || level == 1)
        return x;
    for (size_t w = 0; w < t->base->n_windows; w++) {
        base_moments_lot(&below, eval_table_lot(t->base, w));
        for (size_t i = 0; t->candidate->done[w] && i < eval_table_n(t->base, w); i++)
            base_moments_add(&below, of(t, w, i) <= x.value);
    }
    struct base_estimate share = base_moments_estimate(&below);
    x.error = quantile_error(sorter, level, share.error);
    x.lot_error = quantile_error(sorter, level, share.lot_error);
    return x;
}

static void add_quantiles(struct base_estimate quantiles[EVAL_N_QUANTILES], quantity *of,
                          const struct eval_kld_tables *t, struct sorter *sorter)
{
    sorter->n = 0;
    for (size_t w = 0; w < t->base->n_windows; w++)
        for (size_t i = 0; t->candidate->done[w] && i < eval_table_n(t->base, w); i++)
            sorter->values[sorter->n++] = of(t, w, i);
    base_sort(sorter->values, sorter->n);
    for (size_t q = 0; q < EVAL_N_QUANTILES; q++)
        quantiles[q] = quantile_of(t, of, sorter, eval_quantile_levels[q]);
}

static struct eval_ranks ranks_of(const struct eval_table *table, struct sorter *sorter)
{
    struct eval_ranks ranks = {0};
    sorter->n = 0;
    for (size_t w = 0; w < table->n_windows; w++) {
        const double *rank = row(table, EVAL_RANK, w);
        for (size_t i = 0; table->done[w] && i < eval_table_n(table, w); i++) {
            ranks.mean += rank[i];
            ranks.first += rank[i] == 1;
            ranks.reciprocal += 1 / rank[i];
            sorter->values[sorter->n++] = rank[i];
        }
    }
    if (sorter->n == 0)
        return ranks;
    ranks.mean /= (double)sorter->n;
    ranks.first /= (double)sorter->n;
    ranks.reciprocal /= (double)sorter->n;
    base_sort(sorter->values, sorter->n);
    ranks.median = base_quantile(sorter->values, sorter->n, 0.5);
    return ranks;
}

static struct eval_kld_bucket *bucket_of(struct eval_kld_result *out, double log_top)
{
    double at = exp(log_top) * EVAL_N_BUCKETS, last = EVAL_N_BUCKETS - 1;
    return &out->buckets[at > 0 ? (size_t)(at < last ? at : last) : 0]; /* 0 for NaN, too */
}

/** Sums of what a window adds beside the tally. */
struct extras {
    struct base_moments reverse_kld, js, tv, common_5, common_10, base_beyond, beyond;
};

static void add_beyond(struct eval_beyond *out, struct base_moments *sum, double x)
{
    base_moments_add(sum, x);
    out->largest = x > out->largest ? x : out->largest;
}

static void add_extras(struct eval_kld_result *out, struct extras *sums,
                       const struct eval_kld_tables *t, size_t w)
{
    const double *kl = row(t->candidate, EVAL_KL, w);
    const double *same_top = row(t->candidate, EVAL_SAME_TOP, w);
    size_t n_scored = eval_table_n(t->base, w), lot = eval_table_lot(t->base, w);
    struct base_moments *all = &sums->reverse_kld; /* it begins with it, and has nothing else */
    for (size_t i = 0; i < sizeof *sums / sizeof *all; i++)
        base_moments_lot(&all[i], lot);
    for (size_t i = 0; i < EVAL_N_BUCKETS; i++)
        base_moments_lot(&out->buckets[i].kld, lot);
    for (size_t i = 0; i < n_scored; i++) {
        base_moments_add(&sums->reverse_kld, row(t->candidate, EVAL_REVERSE_KL, w)[i]);
        base_moments_add(&sums->js, row(t->candidate, EVAL_JS, w)[i]);
        base_moments_add(&sums->tv, row(t->candidate, EVAL_TV, w)[i]);
        base_moments_add(&sums->common_5, row(t->candidate, EVAL_COMMON_5, w)[i] / 5);
        base_moments_add(&sums->common_10, row(t->candidate, EVAL_COMMON_10, w)[i] / 10);
        if (t->candidate->n_columns > EVAL_BEYOND) {
            add_beyond(&out->base_beyond, &sums->base_beyond,
                       row(t->candidate, EVAL_BASE_BEYOND, w)[i]);
            add_beyond(&out->beyond, &sums->beyond, row(t->candidate, EVAL_BEYOND, w)[i]);
        }
        struct eval_kld_bucket *bucket = bucket_of(out, row(t->candidate, EVAL_BASE_TOP, w)[i]);
        base_moments_add(&bucket->kld, kl[i]);
        bucket->dp_squared += square(delta_p(t, w, i));
        bucket->same_top += same_top[i];
        struct base_moments *position = &out->positions[eval_table_point(t->base, w, i)];
        base_moments_lot(position, lot);
        base_moments_add(position, kl[i]);
        if (!isfinite(kl[i]))
            eval_nonfinite_note(&out->nonfinite, t->plan, t->stream, w, i);
    }
}

/** Put a token into the list of the worst where it belongs; `capacity` is its length. */
static void offer_worst(struct eval_kld_result *out, const struct eval_table *table,
                        struct eval_scored_token place, size_t capacity)
{
    double kl = row(table, EVAL_KL, place.window)[place.index];
    size_t at = out->n_worst;
    while (at > 0) {
        const struct eval_scored_token *other = &out->worst[at - 1];
        if (!(kl > row(table, EVAL_KL, other->window)[other->index]))
            break;
        at--;
    }
    if (at == capacity)
        return;
    if (out->n_worst < capacity)
        out->n_worst++;
    for (size_t k = out->n_worst - 1; k > at; k--)
        out->worst[k] = out->worst[k - 1];
    out->worst[at] = place;
}

static void count_done(struct eval_kld_result *out, const struct eval_table *table)
{
    for (size_t w = 0; w < table->n_windows; w++) {
        out->n_windows += table->done[w];
        out->n_tokens += table->done[w] ? eval_table_n(table, w) : 0;
    }
}

/** Everything, once there is room for it. */
static void fill(struct eval_kld_result *out, const struct eval_kld_tables *t,
                 struct sorter *sorter)
{
    struct eval_kld_tally tally = {0};
    struct extras sums = {0};
    struct eval_table base = *t->base; /* on the candidate's windows */
    base.done = t->candidate->done;
    for (size_t w = 0; w < t->base->n_windows; w++) {
        if (!t->candidate->done[w])
            continue;
        eval_kld_tally_add(&tally, t, w);
        add_extras(out, &sums, t, w);
    }
    out->figures = eval_kld_tally_figures(&tally);
    out->reverse_kld = base_moments_estimate(&sums.reverse_kld);
    out->js = base_moments_estimate(&sums.js);
    out->tv = base_moments_estimate(&sums.tv);
    out->acceptance = (struct base_estimate){1 - out->tv.value, out->tv.error, out->tv.lot_error};
    out->common_5 = base_moments_estimate(&sums.common_5);
    out->common_10 = base_moments_estimate(&sums.common_10);
    out->base_beyond.mean = base_moments_estimate(&sums.base_beyond);
    out->beyond.mean = base_moments_estimate(&sums.beyond);
    add_quantiles(out->kld_quantiles, kl_of, t, sorter);
    add_quantiles(out->dp_quantiles, delta_p, t, sorter);
    out->ranks = ranks_of(t->candidate, sorter);
    out->base_ranks = ranks_of(&base, sorter);
    struct eval_perplexity_result of_one;
    eval_perplexity(&of_one, t->plan, t->stream, &base);
    out->base_bits_per_byte = of_one.bits_per_byte;
    eval_perplexity(&of_one, t->plan, t->stream, t->candidate);
    out->bits_per_byte = of_one.bits_per_byte;
}

enum status eval_kld(struct eval_kld_result *out, const struct eval_kld_tables *t, size_t n_worst,
                     struct status_why *why)
{
    *out = (struct eval_kld_result){.rounding = (double)NAN};
    count_done(out, t->candidate);
    out->complete = out->n_windows == t->plan->n_windows;
    out->of_documents = eval_plan_lots_are_documents(t->plan);
    size_t n = out->n_tokens;
    n_worst = n_worst < n ? n_worst : n;
    struct sorter sorter = {0};
    if (base_array_new(out->positions, eval_table_n_points(t->base), "positions", why) ||
        base_array_new(out->worst, n_worst, "tokens", why) ||
        base_array_new(sorter.values, n, "tokens", why)) {
        eval_kld_free(out);
        return STATUS_MEMORY;
    }
    fill(out, t, &sorter);
    for (size_t w = 0; n_worst && w < t->base->n_windows; w++)
        for (size_t p = 0; t->candidate->done[w] && p < eval_table_n(t->candidate, w); p++)
            offer_worst(out, t->candidate, (struct eval_scored_token){w, p}, n_worst);
    free(sorter.values);
    return STATUS_OK;
}

void eval_kld_free(struct eval_kld_result *result)
{
    free(result->positions);
    free(result->worst);
    *result = (struct eval_kld_result){0};
}

double eval_rounding_of(const char *products, bool whole)
{
    static const struct {
        const char *products;
        double own, own_whole;
    } kinds[] = {{"float32", 5e-11, 5e-11}, {"openblas", 5e-11, 5e-11}, {"int16", 5.5e-7, 5e-11},
                 {"int8", 6e-3, 2e-6},      {"bf16x3", 4e-9, 4e-9},     {"bf16", 1e-3, 1e-3}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].products, products) == 0)
            return whole ? kinds[i].own_whole : kinds[i].own;
    return (double)NAN;
}

double eval_kld_rounding(double mean, size_t n_tokens, double own)
{
    if (mean == 0)
        return 0;
    return own + fmin(2, 4 / sqrt((double)n_tokens)) * sqrt(mean * own);
}
