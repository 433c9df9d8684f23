/* Which lists depart: those of a path, from a length or position on, of certain lengths. */
#include <math.h>
#include <stdio.h>

#include "clients/probe/verdict.h"

/** A few lists may be on the wrong side of a division. */
static bool most_of(size_t part, size_t whole)
{
    return part * 10 >= whole * 7;
}

struct counts {
    size_t n, n_bad;
};

/** What a cache may have counts to its path. */
static struct counts of_path(const struct probe_judged *items, size_t n, enum probe_path path)
{
    struct counts c = {0};
    for (size_t i = 0; i < n; i++)
        if (items[i].path == path || (items[i].repeated && path == PROBE_CACHED)) {
            c.n++;
            c.n_bad += items[i].bad;
        }
    return c;
}

/** The lists that depart are all of one path, and others are not. */
static bool judge_paths(struct probe_verdict *v, const struct probe_judged *items, size_t n)
{
    static const struct {
        enum probe_path path;
        enum probe_finding finding;
        const char *which, *others;
    } paths[] = {
        {PROBE_CACHED, PROBE_CACHED_PROMPTS, "what the server may have in its cache is",
         "that it computes anew"},
        {PROBE_TOGETHER, PROBE_SHARED_BATCHES, "prompts that are asked at the same time are",
         "that is asked alone"},
        {PROBE_WRITTEN, PROBE_WRITTEN_TOKENS, "what follows tokens that the server has written is",
         "that follows a prompt"},
    };
    for (size_t k = 0; k < sizeof paths / sizeof *paths; k++) {
        struct counts c = of_path(items, n, paths[k].path);
        if (c.n_bad < 2 || c.n_bad < v->n_bad || c.n == n)
            continue;
        v->finding = paths[k].finding;
        snprintf(v->sentence, sizeof v->sentence,
                 "Only %s wrong: %zu of %zu lists depart, and none %s.", paths[k].which, c.n_bad,
                 c.n, paths[k].others);
        return true;
    }
    return false;
}

static size_t where(const struct probe_judged *item, bool by_position)
{
    return by_position ? item->position : item->length;
}

/** The least place of a list that departs, and how many there are from there on. */
static struct counts from_on(const struct probe_judged *items, size_t n, bool by_position,
                             size_t *from)
{
    struct counts c = {0};
    *from = 0;
    for (size_t i = 0; i < n; i++)
        if (items[i].bad && (*from == 0 || where(&items[i], by_position) < *from))
            *from = where(&items[i], by_position);
    for (size_t i = 0; i < n; i++)
        if (where(&items[i], by_position) >= *from) {
            c.n++;
            c.n_bad += items[i].bad;
        }
    return c;
}

/** The last place before `from` of which there is a list. */
static size_t last_before(const struct probe_judged *items, size_t n, bool by_position, size_t from)
{
    size_t last = 0;
    for (size_t i = 0; i < n; i++)
        if (where(&items[i], by_position) < from && where(&items[i], by_position) > last)
            last = where(&items[i], by_position);
    return last;
}

static bool judge_beginning(struct probe_verdict *v, const struct probe_judged *items, size_t n)
{
    size_t from[2];
    struct counts by[2] = {from_on(items, n, false, &from[0]), from_on(items, n, true, &from[1])};
    /* By which of the two is the division cleaner? Without lists of the prompts both are one. */
    bool position = by[1].n_bad * by[0].n > by[0].n_bad * by[1].n;
    struct counts c = by[position];
    size_t last = last_before(items, n, position, from[position]);
    if (!most_of(c.n_bad, c.n) || last == 0 || c.n == n)
        return false;
    v->finding = position ? PROBE_FROM_POSITION : PROBE_FROM_LENGTH;
    v->from = from[position];
    snprintf(v->sentence, sizeof v->sentence,
             position ? "The server is wrong from position %zu of a prompt on (%zu of %zu lists); "
                        "the last one before that is right at %zu."
                      : "The server is wrong in prompts of %zu tokens and more (%zu of %zu lists); "
                        "with %zu tokens it is right.",
             v->from, c.n_bad, c.n, last);
    return true;
}

static struct counts of_length(const struct probe_judged *items, size_t n, size_t length)
{
    struct counts c = {0};
    for (size_t i = 0; i < n; i++)
        if (items[i].length == length) {
            c.n++;
            c.n_bad += items[i].bad;
        }
    return c;
}

/**
 * Lengths that depart do so in most of their lists, each in half of them at least, and most lengths
 * do not. One list says nothing of its length: it may be the prompt's.
 */
static bool judge_lengths(struct probe_verdict *v, const struct probe_judged *items, size_t n)
{
    char list[160] = "";
    size_t used = 0, least = 0;
    struct counts repeated = {0}; /* lists of lengths that have several */
    for (size_t next = 0;;) {
        size_t length = 0; /* the least one that departs and is above `next` */
        for (size_t i = 0; i < n; i++)
            if (items[i].bad && items[i].length > next && (!length || items[i].length < length))
                length = items[i].length;
        if (!length)
            break;
        struct counts c = of_length(items, n, length);
        if (c.n_bad * 2 < c.n)
            return false;
        repeated.n += c.n > 1 ? c.n : 0;
        repeated.n_bad += c.n > 1 ? c.n_bad : 0;
        if (used < sizeof list - 24)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%zu", used ? ", " : "",
                                     length);
        least = least ? least : length;
        next = length;
    }
    if (v->n_bad * 2 > n || repeated.n == 0 || !most_of(repeated.n_bad, repeated.n))
        return false;
    v->finding = PROBE_LENGTHS;
    v->from = least;
    snprintf(v->sentence, sizeof v->sentence,
             "The server is wrong in prompts of certain lengths: %s tokens; it is right in the "
             "others (%zu of %zu lists depart).",
             list, v->n_bad, n);
    return true;
}

/** Whether what is within the limits is off by more than coarse arithmetic makes, too. */
static bool is_everywhere(const struct probe_verdict *v, const struct probe_judged *items, size_t n)
{
    size_t n_off = 0;
    for (size_t i = 0; i < n; i++)
        n_off += !items[i].bad && items[i].figures.rms > 1.5 * items[i].coarse;
    return n_off * 2 > n - v->n_bad;
}

void probe_judge_groups(struct probe_verdict *v, const struct probe_judged *items, size_t n)
{
    bool everywhere = v->n_bad == 0 || v->n_bad == n || is_everywhere(v, items, n);
    if (!everywhere &&
        (judge_paths(v, items, n) || judge_beginning(v, items, n) || judge_lengths(v, items, n)))
        return;
    everywhere = everywhere || most_of(v->n_bad, n);
    v->finding = everywhere ? PROBE_EVERYWHERE : PROBE_SCATTERED;
    if (everywhere)
        snprintf(v->sentence, sizeof v->sentence,
                 "The server does not compute what the file says: its log-probabilities are off by "
                 "%.1e everywhere, %.2f times what is expected (%.1e), and coarse arithmetic makes "
                 "%.1e. Is it another quantisation (--or FILE compares with one), or a "
                 "key/value cache of few bits (-ctk and -ctv compare with one)?",
                 v->flat, v->flat_fine > 0 ? v->flat / v->flat_fine : 0, v->flat_fine,
                 isnan(v->flat_coarse) ? v->coarse : v->flat_coarse);
    else
        snprintf(v->sentence, sizeof v->sentence,
                 "The server is wrong at %zu of %zu positions, which have no length or path in "
                 "common.",
                 v->n_bad, n);
}
