/**
 * A race of candidates: which is the smallest that is as good as the best, decided while windows
 * come, with as few of them as that takes. docs/best.md has it in words.
 *
 * The figure is the mean KL divergence from a base, in nats; lower is better. Windows must come in
 * random order. Candidate i is as good as candidate j if D(i) <= (1 + share) D(j) + nats, the
 * margin; else it is worse. That is tested for each ordered pair on windows that both have, by
 * Student's t over windows, at looks that are fixed beforehand: 8, 12, 16, 24, 32, 48, ... windows
 * and the last one. All intervals of all pairs and looks together share one probability of error,
 * alpha: half of it is the last look's, the rest is divided among the others (a union bound, which
 * holds however they depend on each other). So all that is found, at any time, holds at once with a
 * probability of 1 - alpha, as far as means over windows are normal.
 *
 * A candidate leaves the race as soon as no pair that matters needs it.
 */
#ifndef EVAL_RACE_RACE_H
#define EVAL_RACE_RACE_H

#include <stdbool.h>

#include "base/moments.h"
#include "base/status.h"

struct eval_race_rules {
    size_t n; /* candidates, those that are preferred where they are as good (smaller) first */
    size_t n_windows;   /* that there are: the last look */
    double nats, share; /* the margin; neither is negative */
    double alpha;       /* above 0, below 1 */
};

/** What is known of candidate i beside candidate j. */
enum eval_race_relation { EVAL_RACE_OPEN, EVAL_RACE_AS_GOOD, EVAL_RACE_WORSE };

/** Candidate i less candidate j, over windows that both have. */
struct eval_race_pair {
    struct base_moments excess;     /* D(i) - (1 + share) D(j) - nats, window by window */
    struct base_moments difference; /* D(i) - D(j) */
    double low, high; /* of the mean difference, at the last look that both had; infinite before */
    enum eval_race_relation relation;
};

/** Release with eval_race_free. */
struct eval_race {
    struct eval_race_rules rules;
    struct eval_race_pair *pairs; /* [n, n]; those of a candidate with itself are not used */
    struct base_moments *means;   /* [n] of D, window by window */
    bool *running;                /* [n]: the next window is wanted of it */
    bool *broken;                 /* [n]: a divergence was not finite */
    size_t n_seen, n_looks;       /* windows, and looks at them */
    bool over;                    /* all is clear */
};

/** Fails: STATUS_MEMORY. */
enum status eval_race_make(struct eval_race *out, const struct eval_race_rules *rules,
                           struct status_why *why);
/** A zero-initialised object is allowed. */
void eval_race_free(struct eval_race *race);

/** The windows before look k, from 0 on; the number of windows of the last one and after it. */
size_t eval_race_look(const struct eval_race_rules *rules, size_t k);

/**
 * The next window: mean divergence of each candidate over it; those that are not running are not
 * read. After a look race->running says of which more windows are wanted. Returns race->over.
 */
bool eval_race_add(struct eval_race *race, const double *divergences);

/** Candidate i beside j: as it is known or, where it is open, by the means (never open then). */
enum eval_race_relation eval_race_relation(const struct eval_race *race, size_t i, size_t j,
                                           bool *clear);

/**
 * The answer so far: the first candidate that is worse than none. clear: out, may be NULL: all
 * that it rests on is known, nothing is by the means alone. Returns n if every candidate is broken.
 */
size_t eval_race_answer(const struct eval_race *race, bool *clear);

/** The candidate that i is known to be worse than, the one with the lowest mean; n: none. */
size_t eval_race_better(const struct eval_race *race, size_t i);

/**
 * Whether no candidate before i is as good as it; `clear` as above. The answer is among them,
 * unless margins add up: a smaller one within the margin of it, but not of the best.
 */
bool eval_race_survives(const struct eval_race *race, size_t i, bool *clear);

#endif
