#include "clients/probe/ask/again.h"

#include <math.h>

const char *probe_repeated_name(enum probe_repeated what)
{
    static const char *const names[] = {"nothing", "noise", "exact", "may be cached", "cached"};
    return names[what];
}

enum probe_repeated probe_repeated_of(const struct probe_repeats *r)
{
    if (r->computed.n_same + r->unknown.n_same < r->computed.n + r->unknown.n)
        return PROBE_REPEATED_NOISE;
    if (r->cached.n > r->computed.n + r->unknown.n)
        return PROBE_REPEATED_FROM_CACHE;
    return r->computed.n  ? PROBE_REPEATED_EXACT
           : r->unknown.n ? PROBE_REPEATED_PERHAPS
                          : PROBE_REPEATED_NOTHING;
}

double probe_repeats_rms(const struct probe_repeats *r)
{
    size_t n = r->computed.n + r->unknown.n - r->n_disjoint;
    return n ? sqrt(r->squares / (double)n) : (double)NAN;
}

double probe_lists_distance(const struct probe_lists *a, const struct probe_sample *first,
                            const struct probe_lists *b, const struct probe_sample *second)
{
    double squares = 0, mass = 0;
    for (size_t i = 0; i < first->n; i++)
        for (size_t j = 0; j < second->n; j++)
            if (a->ids[first->first + i] == b->ids[second->first + j]) {
                double log_q = a->log_q[first->first + i];
                double off = log_q - b->log_q[second->first + j];
                squares += exp(log_q) * off * off;
                mass += exp(log_q);
            }
    return mass > 0 ? sqrt(squares / mass) : (double)NAN;
}

/** In any order: that of equal values is nobody's. */
static bool is_same(const struct probe_lists *a, const struct probe_sample *x,
                    const struct probe_lists *b, const struct probe_sample *y)
{
    size_t n_same = 0;
    for (size_t i = x->first; i < x->first + x->n; i++)
        for (size_t j = y->first; j < y->first + y->n; j++)
            n_same += a->ids[i] == b->ids[j] && a->log_q[i] == b->log_q[j];
    return x->n == y->n && n_same == x->n;
}

void probe_repeats_add(struct probe_repeats *r, const struct probe_lists *first, size_t from,
                       const struct probe_lists *again, int64_t n_cached)
{
    struct probe_pairs *pairs = n_cached < 0    ? &r->unknown
                                : n_cached == 0 ? &r->computed
                                                : &r->cached;
    r->n_answers++;
    for (size_t i = 0; i < again->n; i++) {
        const struct probe_sample *y = &again->items[i], *x = NULL;
        for (size_t k = from; k < first->n && !x; k++)
            if (first->items[k].window == y->window && first->items[k].path == y->path &&
                first->items[k].length == y->length && first->items[k].position == y->position)
                x = &first->items[k];
        if (!x)
            continue;
        pairs->n++;
        pairs->n_same += is_same(first, x, again, y);
        if (n_cached > 0)
            continue;
        double distance = probe_lists_distance(first, x, again, y);
        r->n_disjoint += isnan(distance);
        if (isnan(distance))
            continue;
        r->squares += distance * distance;
        r->largest = fmax(r->largest, distance);
    }
}
