/** Choosing keys: random operations with many equal scores, and what they must choose. */
#ifndef TESTS_KERNELS_CHOOSE_SCENE_H
#define TESTS_KERNELS_CHOOSE_SCENE_H

#include "kernels/operations.h"
#include "tests/harness/rng.h"

struct choose_shape {
    size_t n_heads, head_size, n_best;
    bool weighted, as_one;
    size_t pool; /* 0: 1; else `given` */
    bool fill;
    size_t together, n_local; /* together 0: 1 */
    bool given;               /* the caller says how many keys a query sees */
    bool integers;            /* small ones, so that most scores are equal to others */
    size_t n_last;            /* queries of the last segment */
};

enum { CHOOSE_SCENE_SHAPES = 18, CHOOSE_SCENE_RANGES = 7 };
struct choose_shape choose_scene_shape(size_t i);

/**
 * Rows of q, k and weights, on the host, none after the last that is used; op points to them.
 * bits: n_words, free of choices.
 */
struct choose_scene {
    struct kern_query_range ranges[CHOOSE_SCENE_RANGES];
    struct kern_choose op;
    float *q, *k, *weights;
    uint32_t *n_seen;
    uint64_t *bits;
    size_t n_q, n_k, n_weights, n_words;
};

/** Segments with and without parents, one of them with only its tail as queries. */
void choose_scene_open(struct choose_scene *s, struct rng *r, const struct choose_shape *shape);
void choose_scene_close(struct choose_scene *s);

/** Fail unless the bits are those that the definition asks for, query by query. */
void choose_scene_check(const struct choose_scene *s, const uint64_t *bits);

#endif
