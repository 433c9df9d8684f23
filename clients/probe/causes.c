/* What explains all lists at once: a temperature, sums that are off, other tokens, another file. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "clients/probe/verdict.h"

enum { LEAST_FITTED = 6, LEAST_TOKENS = 5 /* of a list that gets an offset of its own */ };

typedef double probe_value_fn(const struct probe_judged *item, double more);

/** The median of a value over the lists; NaN: too few have one. more: passed on. */
static double median_of(const struct probe_judged *items, size_t n, probe_value_fn *value,
                        double more)
{
    double *values = malloc((n + 1) * sizeof *values);
    size_t used = 0;
    for (size_t i = 0; values && i < n; i++) {
        double x = items[i].excused ? (double)NAN : value(&items[i], more);
        if (!isnan(x))
            values[used++] = x;
    }
    double median = values && used >= LEAST_FITTED ? probe_median(values, used) : (double)NAN;
    free(values);
    return median;
}

static double slope_of(const struct probe_judged *item, double more)
{
    (void)more;
    return item->n >= LEAST_TOKENS ? item->slope : (double)NAN;
}

static double distance_of(const struct probe_judged *item, double slope)
{
    return fabs(slope_of(item, 0) - slope);
}

/** What is left of the RMS with this slope, as a share of it. */
static double left_of(const struct probe_judged *item, double slope)
{
    if (item->n < LEAST_TOKENS || !(item->figures.rms > 0))
        return (double)NAN;
    return probe_residual(item->log_q, item->log_p, item->n, slope, (double)NAN) /
           item->figures.rms;
}

/** What a slope leaves, beside what coarse arithmetic is off. */
static double left_beside_coarse(const struct probe_judged *item, double slope)
{
    return left_of(item, slope) * item->figures.rms / item->coarse;
}

/** The standard error of a median of slopes. */
static double error_of(const struct probe_judged *items, size_t n, double slope)
{
    const double of_median = 1.2533, of_deviation = 1.4826; /* where they are normal */
    double fitted = 0;
    for (size_t i = 0; i < n; i++)
        if (!items[i].excused && !isnan(slope_of(&items[i], 0)))
            fitted += items[i].weight;
    return of_median * of_deviation * median_of(items, n, distance_of, slope) /
           sqrt(fmax(fitted, 1));
}

/** With this slope the lists are off by much less, or by no more than a right server's. */
static bool is_explained(const struct probe_verdict *v, const struct probe_judged *items, size_t n,
                         double slope)
{
    const double most_left = 0.5, most_beside = 3;
    if (v->flat <= v->most * v->flat_fine)
        return true;
    return median_of(items, n, left_of, slope) < most_left &&
           median_of(items, n, left_beside_coarse, slope) < most_beside;
}

bool probe_judge_temperature(struct probe_verdict *v, const struct probe_judged *items, size_t n)
{
    const double least = 0.004, sure = 5;
    v->slope = median_of(items, n, slope_of, 0);
    if (isnan(v->slope) || !(v->slope > 0))
        return false;
    v->slope_error = error_of(items, n, v->slope);
    if (!(fabs(v->slope - 1) > fmax(least, sure * v->slope_error)) ||
        !is_explained(v, items, n, v->slope))
        return false;
    v->finding = PROBE_TEMPERATURE;
    v->temperature = 1 / v->slope;
    snprintf(v->sentence, sizeof v->sentence,
             "The server's log-probabilities are those of a temperature of %.3f +- %.1e: it "
             "divides the logits before it reports them.",
             v->temperature, v->slope_error * v->temperature * v->temperature);
    return true;
}

/** What all log-probabilities of a list are off by, beside what an explanation says of it. */
struct sums {
    double products, squares; /* of found and explained */
    size_t n, n_whole, n_more, n_cut;
    double squares_found, squares_left;
};

/** Whether a list's sum says something: where rounding moves lists by half a nat, none does. */
static bool has_sum(const struct probe_judged *item)
{
    const double most_moved = 0.5;
    return item->n >= 2 && !item->excused && !isnan(item->figures.mean) && item->fine <= most_moved;
}

/** What a list is off by where its tail counts twice. */
static double tail_twice(const struct probe_judged *item)
{
    return -log1p(fmax(1 - item->figures.p_mass, 0));
}

/**
 * What a list is off by as a whole: how its probability differs. Noise of logits lowers the mean of
 * its log-probabilities by half its variance, as normalising is convex, but its probability not.
 */
static double whole_of(const struct probe_figures *f)
{
    const double least = 1e-35; /* a list without any probability is not off without bounds */
    return log(fmax(f->q_mass, least) / f->p_mass);
}

static struct sums add_up(const struct probe_judged *items, size_t n)
{
    struct sums s = {.n = 0};
    for (size_t i = 0; i < n; i++) {
        const struct probe_figures *f = &items[i].figures;
        double tail = 1 - f->p_mass, step = probe_step(items[i].log_q, items[i].n);
        if (!has_sum(&items[i]))
            continue;
        double explained = tail_twice(&items[i]);
        s.products += explained * whole_of(f);
        s.squares += explained * explained;
        double left = probe_residual(items[i].log_q, items[i].log_p, items[i].n, 1, explained);
        s.squares_found += f->rms * f->rms;
        s.squares_left += left * left;
        s.n++;
        s.n_whole += f->q_mass > 1 - 1e-3 - 2 * step && tail > 5e-3;
        s.n_cut += tail > 5e-3;
        s.n_more += f->q_mass > 1 + 2e-3 + 6 * step + 2 * items[i].coarse;
    }
    return s;
}

/**
 * The standard error of the share that tails have, from how lists scatter about it. Each scatter is
 * divided by what the list has not drawn to itself of the share; one list alone says nothing.
 */
static double error_of_share(const struct sums *s, const struct probe_judged *items, size_t n,
                             double share)
{
    double scatter = 0;
    for (size_t i = 0; i < n; i++) {
        if (!has_sum(&items[i]))
            continue;
        double explained = tail_twice(&items[i]);
        double off = explained * (whole_of(&items[i].figures) - share * explained) /
                     (1 - explained * explained / s->squares);
        scatter += off * off;
    }
    return sqrt(scatter) / s->squares;
}

/**
 * Tails make most of what lists are off by, or surely their part beside a right server's noise: 10
 * standard errors leave the share an error of a tenth, half of how far from 1 it may be, and right
 * servers are off by up to 1.3 times `fine` with 24 lists (verdict.c), here with some room.
 */
static bool counts_tails_twice(const struct probe_verdict *v, const struct sums *s, double share,
                               double error)
{
    const double most_left = 0.25, most_beside = 1.5, sure = 10;
    double noise = most_beside * v->fine;
    return share > 0.8 && share < 1.2 &&
           (s->squares_left < most_left * s->squares_found ||
            (share > sure * error && s->squares_left <= (double)s->n * noise * noise));
}

/** What is left with an offset of each list's own. */
static double free_of(const struct probe_judged *item, double more)
{
    (void)more;
    if (item->n < LEAST_TOKENS || !(item->figures.rms > 0))
        return (double)NAN;
    return probe_residual(item->log_q, item->log_p, item->n, 1, (double)NAN) / item->figures.rms;
}

/** 1: all of a list's log-probabilities are too high, by more than coarse arithmetic makes. */
static double is_above(const struct probe_judged *item, double more)
{
    (void)more;
    return item->n < LEAST_TOKENS ? (double)NAN : item->figures.mean > 2 * item->coarse;
}

bool probe_judge_sums(struct probe_verdict *v, const struct probe_judged *items, size_t n)
{
    struct sums s = add_up(items, n);
    if (s.n < LEAST_FITTED)
        return false;
    double share = s.squares > 0 ? s.products / s.squares : 0;
    if (s.n_cut * 3 >= s.n && s.n_whole == s.n_cut) {
        v->finding = PROBE_CUT_LIST;
        snprintf(v->sentence, sizeof v->sentence,
                 "The server cuts its lists and normalises what is left: they sum to 1, though the "
                 "tokens that are not listed have a share in %zu of %zu lists. Are the values "
                 "those after sampling?",
                 s.n_cut, s.n);
    } else if (counts_tails_twice(v, &s, share, error_of_share(&s, items, n, share))) {
        v->finding = PROBE_TAIL_TWICE;
        snprintf(v->sentence, sizeof v->sentence,
                 "The server counts the tokens that are not listed twice: its log-probabilities "
                 "are too low by ln(1 + their share), %.2f times that in the mean. Apart from that "
                 "they are off by %.1e RMS, where %.1e is expected.",
                 share, sqrt(s.squares_left / (double)s.n), v->fine);
    } else if (median_of(items, n, is_above, 0) > 0.5 && median_of(items, n, free_of, 0) < 0.34) {
        v->finding = PROBE_CUT_LIST;
        snprintf(v->sentence, sizeof v->sentence,
                 "The server's log-probabilities are too high, by the same amount in each list: it "
                 "normalises over fewer tokens than the vocabulary. Are the values those after "
                 "sampling (top-k, top-p, min-p)?");
    } else if (s.n_more * 4 > s.n) {
        v->finding = PROBE_TOO_MUCH;
        snprintf(v->sentence, sizeof v->sentence,
                 "The server's lists are no distributions: in %zu of %zu the probabilities sum to "
                 "more than 1.",
                 s.n_more, s.n);
    }
    return v->finding != PROBE_NOTHING;
}

/**
 * What is left of the mean square with an alternative, as a share of it; NaN: it says too little.
 * offset: of each list, as that of probe_residual.
 */
static double share_left(const struct probe_judged *items, size_t n,
                         const struct probe_alternative *a, double offset, struct probe_way *way)
{
    double found = 0, left = 0;
    size_t used = 0, possible = 0;
    for (size_t i = 0; i < n; i++) {
        const double *log_p = a->log_p + items[i].first;
        /* What follows another prompt, the server has written for that one. */
        if (items[i].path == PROBE_WRITTEN && a->finding != PROBE_OTHER_FILE)
            continue;
        if (isnan(offset) && items[i].n < LEAST_TOKENS)
            continue;
        possible++;
        if (!items[i].n || isnan(log_p[0]) || items[i].excused)
            continue;
        double rms = probe_residual(items[i].log_q, log_p, items[i].n, 1, offset);
        found += items[i].figures.rms * items[i].figures.rms;
        left += rms * rms;
        used++;
        probe_way_add(way, items[i].log_q, items[i].log_p, log_p, items[i].n, items[i].weight);
    }
    return used * 2 >= possible && found > 0 ? left / found : (double)NAN;
}

static void say_alternative(struct probe_verdict *v, const struct probe_alternative *a,
                            const struct probe_way *way)
{
    static const char *const sentences[PROBE_N_FINDINGS] = {
        [PROBE_NO_BOS] = "The server evaluates the prompts without BOS, with which the model's "
                         "texts begin.",
        [PROBE_TWO_BOS] = "The server puts a second BOS before the prompts.",
        [PROBE_TOKEN_LESS] = "The server leaves out the last token of each prompt: it predicts one "
                             "token too early.",
        [PROBE_LISTS_AHEAD] = "The server's lists of a prompt's tokens are one position ahead: "
                              "each is the prediction of the token after the one it is given for.",
        [PROBE_LISTS_BEHIND] = "The server's lists of a prompt's tokens are one position behind: "
                               "each is the prediction of the token before the one it is given "
                               "for."};
    bool tails = v->finding == PROBE_TAIL_TWICE;
    v->finding = a->finding;
    v->file = a->file;
    if (sentences[a->finding])
        snprintf(v->sentence, sizeof v->sentence, "%s", sentences[a->finding]);
    else
        snprintf(v->sentence, sizeof v->sentence,
                 "The server %sserves another file: what it says is what %.300s says, %.2f +- %.2f "
                 "of the way there from this one.",
                 tails ? "counts the tokens that are not listed twice, and " : "", a->file,
                 probe_way_share(way), probe_way_error(way));
}

bool probe_judge_alternatives(struct probe_verdict *v, const struct probe_judged *items, size_t n,
                              const struct probe_alternative *alternatives, size_t n_alternatives)
{
    const double tenth = 0.1, half = 0.5, beyond = 1.5, sure = 3;
    bool tails = v->finding == PROBE_TAIL_TWICE;
    const struct probe_alternative *best = NULL;
    struct probe_way best_way = {0};
    double least = (double)INFINITY;
    for (size_t i = 0; i < n_alternatives; i++) {
        struct probe_way way = {0};
        bool is_file = alternatives[i].finding == PROBE_OTHER_FILE;
        double left = share_left(items, n, &alternatives[i], tails ? (double)NAN : 0, &way);
        double share = probe_way_share(&way), error = sure * probe_way_error(&way);
        bool explains =
            is_file ? share > fmax(half, error) && share < beyond : left < tenth && !tails;
        if (explains && left < least) {
            best = &alternatives[i];
            best_way = way;
            least = left;
        }
    }
    if (best)
        say_alternative(v, best, &best_way);
    return best != NULL;
}
