#include "eval/race/race.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/array.h"

enum { FIRST_LOOK = 8 };

static struct eval_race_pair *pair(const struct eval_race *r, size_t i, size_t j)
{
    return &r->pairs[i * r->rules.n + j];
}

enum status eval_race_make(struct eval_race *out, const struct eval_race_rules *rules,
                           struct status_why *why)
{
    size_t n = rules->n;
    *out = (struct eval_race){.rules = *rules};
    assert(n > 0 && rules->nats >= 0 && rules->share >= 0);
    assert(rules->alpha > 0 && rules->alpha < 1);
    if (n > UINT16_MAX || base_array_new(out->pairs, n * n, "pairs of models", why) ||
        base_array_new(out->means, n, "models", why) ||
        base_array_new(out->running, n, "models", why) ||
        base_array_new(out->broken, n, "models", why)) {
        eval_race_free(out);
        return status_fail(why, STATUS_MEMORY, "no memory for pairs of %zu models", n);
    }
    for (size_t i = 0; i < n; i++)
        out->running[i] = true;
    for (size_t i = 0; i < n * n; i++) {
        out->pairs[i].low = -(double)INFINITY;
        out->pairs[i].high = (double)INFINITY;
    }
    return STATUS_OK;
}

void eval_race_free(struct eval_race *r)
{
    free(r->pairs);
    free(r->means);
    free(r->running);
    free(r->broken);
    *r = (struct eval_race){0};
}

size_t eval_race_look(const struct eval_race_rules *rules, size_t k)
{
    size_t at = FIRST_LOOK;
    for (; k > 1 && at < rules->n_windows; k -= 2)
        at *= 2;
    at += k == 1 ? at / 2 : 0;
    return at < rules->n_windows ? at : rules->n_windows;
}

/** Looks before the last one. */
static size_t n_early(const struct eval_race_rules *rules)
{
    size_t k = 0;
    while (eval_race_look(rules, k) < rules->n_windows)
        k++;
    return k;
}

/** The probability of error of one side of one interval at this look. */
static double tail_of(const struct eval_race *r)
{
    size_t early = n_early(&r->rules), n = r->rules.n;
    bool last = r->n_seen == r->rules.n_windows;
    double of_look = !early ? r->rules.alpha : r->rules.alpha / 2 / (last ? 1 : (double)early);
    /* An excess for each ordered pair, a difference for each pair, with two sides each. */
    return of_look / (3 * (double)n * (double)(n - 1));
}

static double half_width(const struct base_moments *m, double quantile)
{
    double n = (double)m->n;
    return quantile * sqrt(m->spread / (n - 1) / n);
}

static void look_at(struct eval_race_pair *p, double quantile)
{
    double half = half_width(&p->difference, quantile);
    p->low = p->difference.mean - half;
    p->high = p->difference.mean + half;
    half = half_width(&p->excess, quantile);
    if (p->relation)
        return;
    if (p->excess.mean + half <= 0)
        p->relation = EVAL_RACE_AS_GOOD;
    else if (p->excess.mean - half > 0)
        p->relation = EVAL_RACE_WORSE;
}

/** Worse than another: neither the answer nor needed to tell whether others are. */
static bool is_out(const struct eval_race *r, size_t i)
{
    for (size_t j = 0; j < r->rules.n; j++)
        if (j != i && pair(r, i, j)->relation == EVAL_RACE_WORSE)
            return true;
    return r->broken[i];
}

/** As good as all that are not out. */
static bool is_good(const struct eval_race *r, size_t i)
{
    for (size_t j = 0; j < r->rules.n; j++)
        if (j != i && pair(r, i, j)->relation != EVAL_RACE_AS_GOOD && !is_out(r, j))
            return false;
    return !is_out(r, i);
}

/** Who runs on: the members of open pairs whose first may still be the answer. */
static void settle(struct eval_race *r)
{
    size_t n = r->rules.n, end = 0;
    for (size_t i = 0; i < n; i++)
        r->running[i] = false;
    while (end < n && !is_good(r, end))
        end++;
    r->over = true;
    for (size_t i = 0; i < end; i++)
        for (size_t j = 0; j < n && !is_out(r, i); j++) {
            if (j == i || is_out(r, j) || pair(r, i, j)->relation)
                continue;
            r->running[i] = r->running[j] = true;
            r->over = false;
        }
}

static void look(struct eval_race *r)
{
    size_t n = r->rules.n;
    r->n_looks++;
    if (n > 1 && r->n_seen > 1) {
        double quantile = base_student(r->n_seen - 1, tail_of(r));
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++)
                if (i != j && r->running[i] && r->running[j])
                    look_at(pair(r, i, j), quantile);
    }
    settle(r);
}

bool eval_race_add(struct eval_race *r, const double *divergences)
{
    size_t n = r->rules.n;
    if (r->over)
        return true;
    for (size_t i = 0; i < n; i++)
        if (r->running[i] && !isfinite(divergences[i])) {
            r->broken[i] = true;
            r->running[i] = false;
        }
    for (size_t i = 0; i < n; i++) {
        if (!r->running[i])
            continue;
        base_moments_add(&r->means[i], divergences[i]);
        for (size_t j = 0; j < n; j++) {
            if (j == i || !r->running[j])
                continue;
            struct eval_race_pair *p = pair(r, i, j);
            base_moments_add(&p->difference, divergences[i] - divergences[j]);
            base_moments_add(&p->excess, divergences[i] - (1 + r->rules.share) * divergences[j] -
                                             r->rules.nats);
        }
    }
    r->n_seen++;
    if (r->n_seen == eval_race_look(&r->rules, r->n_looks))
        look(r);
    return r->over;
}

enum eval_race_relation eval_race_relation(const struct eval_race *r, size_t i, size_t j,
                                           bool *clear)
{
    const struct eval_race_pair *p = pair(r, i, j);
    bool known = p->relation || r->broken[i] || r->broken[j];
    if (clear)
        *clear = known;
    if (known && !p->relation)
        return r->broken[i] ? EVAL_RACE_WORSE : EVAL_RACE_AS_GOOD;
    if (known)
        return p->relation;
    return p->excess.mean > 0 ? EVAL_RACE_WORSE : EVAL_RACE_AS_GOOD;
}

/** Whether candidate i is worse than none; clear: stays true where that is known. */
static bool is_answer(const struct eval_race *r, size_t i, bool *clear)
{
    bool all_known = true;
    if (is_out(r, i))
        return false;
    for (size_t j = 0; j < r->rules.n; j++) {
        bool known = true;
        if (j == i || is_out(r, j))
            continue;
        if (eval_race_relation(r, i, j, &known) == EVAL_RACE_WORSE) {
            *clear &= known;
            return false;
        }
        all_known &= known;
    }
    *clear &= all_known;
    return true;
}

size_t eval_race_answer(const struct eval_race *r, bool *clear)
{
    bool known = true;
    size_t i = 0, best = r->rules.n;
    while (i < r->rules.n && !is_answer(r, i, &known))
        i++;
    for (size_t k = 0; i == r->rules.n && k < r->rules.n; k++)
        if (!r->broken[k] && (best == r->rules.n || r->means[k].mean < r->means[best].mean))
            best = k;
    if (clear)
        *clear = known && best == r->rules.n && i < r->rules.n;
    return i < r->rules.n ? i : best;
}

size_t eval_race_better(const struct eval_race *r, size_t i)
{
    size_t best = r->rules.n;
    for (size_t j = 0; j < r->rules.n; j++)
        if (j != i && pair(r, i, j)->relation == EVAL_RACE_WORSE &&
            (best == r->rules.n || r->means[j].mean < r->means[best].mean))
            best = j;
    return best;
}

bool eval_race_survives(const struct eval_race *r, size_t i, bool *clear)
{
    bool known, all_known = true;
    *clear = true;
    for (size_t k = 0; k < i; k++) {
        if (eval_race_relation(r, k, i, &known) == EVAL_RACE_AS_GOOD) {
            *clear = known;
            return false;
        }
        all_known &= known;
    }
    *clear = all_known;
    return !r->broken[i];
}
