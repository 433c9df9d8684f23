/**
 * Token sequences of any length, the ends of which are scored. Choice tasks and requests are made
 * of them. Sequences lie in groups, which are the items of a run. The tokens that a group has in
 * common are evaluated once, as a segment that is the parent of those with the rest. No score
 * depends on the grouping: keys are summed by their position in the sequence
 * (kernels/operations.h), and sequences that the model rotates by other angles have nothing in
 * common.
 */
#ifndef EVAL_UNITS_SEQUENCES_H
#define EVAL_UNITS_SEQUENCES_H

#include "eval/run/unit.h"

struct eval_sequence {
    const int32_t *ids;  /* [n_tokens], borrowed */
    size_t n_tokens;     /* at least 2; the last is a target only */
    size_t first_scored; /* tokens from here on are scored; at least 1, below n_tokens */
    size_t owner;        /* a number of the caller's */
    bool is_long;        /* it has more inputs than the model's boundary; set by the grouping */
    double *log_probs;   /* out, the caller's: [n_tokens - first_scored] */
    /* out, the caller's: n_likeliest of each of them, as struct kern_score has its tops; NULL: not
       wanted. More than one: the units want tops. */
    struct kern_top *likeliest;
    size_t n_likeliest; /* at most KERN_TOP_MAX */
    bool greedy;        /* out: each scored token is the most likely one at its position */
};

static inline bool eval_sequence_is_long(const struct eval_sequence *s,
                                         const struct eval_units *units)
{
    return s->n_tokens - 1 > units->boundary;
}

/** Sequences [first, first + n), which begin with the same n_common tokens. */
struct eval_sequence_group {
    size_t first, n;
    size_t n_common; /* below the n_tokens of each; 0 where n is 1 */
    size_t owner;    /* the least of its sequences; by eval_sequences_group */
};

/**
 * The part that kinds of units made of sequences have in common; the first member of their objects.
 * They fill `items`, and the groups either by themselves or with eval_sequences_group.
 */
struct eval_sequences {
    struct eval_units units; /* its items are the groups */
    struct eval_sequence *items;
    size_t n, capacity;
    struct eval_sequence_group *groups; /* [units.n_items], in the order of evaluation; free() */
};

/**
 * Sort the sequences and divide them into groups so that the fewest tokens are evaluated, groups
 * in the order of their least `owner`. A group has at most max_tokens tokens to evaluate, unless
 * it is of one sequence.
 * Fails: STATUS_MEMORY.   Cost: O(n log n) comparisons of sequences, O(n * 1024) steps at worst.
 */
enum status eval_sequences_group(struct eval_sequences *sequences, size_t max_tokens,
                                 struct status_why *why);

/* For the table of functions of such a kind: eval/run/unit.h. */

enum status eval_sequences_check_ids(const struct eval_units *units, const struct model *model,
                                     struct status_why *why);
struct eval_size eval_group_size(const struct eval_units *units, size_t g);
void eval_group_lay(const struct eval_units *units, size_t g, struct eval_batch *batch);
void eval_group_take(struct eval_units *units, size_t g, const struct eval_scores *scores);

#endif
