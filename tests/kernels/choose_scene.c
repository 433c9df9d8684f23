#include "tests/kernels/choose_scene.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/cmocka.h"
static const struct kern_query_range ranges[CHOOSE_SCENE_RANGES] = {
    {.q_row = 0, .n_q = 90, .kv_row = 0},
    {.q_row = 90, .n_q = 33, .kv_row = 90, .parent_kv_row = 0, .n_parent = 90},
    {.q_row = 123, .n_q = 7, .kv_row = 123, .parent_kv_row = 3, .n_parent = 65},
    {.q_row = 130, .n_q = 30, .q_offset = 110, .kv_row = 20},
    {.q_row = 160, .n_q = 1, .kv_row = 160},
    {.q_row = 161, .n_q = 0, .kv_row = 161},
    {.q_row = 161, .q_offset = 60, .kv_row = 101}, /* of n_last queries */
};
enum { ROWS = 161, MOST = 150, MOST_GIVEN = 40 };

static const struct choose_shape shapes[CHOOSE_SCENE_SHAPES] = {
    {4, 16, 20, .weighted = true, .integers = true, .n_last = 2},
    {3, 70, 40, .weighted = true, .n_last = 3},
    {1, 1, 1, .weighted = true, .integers = true, .n_last = 4},
    {2, 5, 0, .weighted = true},
    {2, 130, MOST, .weighted = true},
    {4, 8, 12, .weighted = true, .given = true, .integers = true},
    {2, 16, 4, .together = 8, .n_local = 1, .integers = true},
    {3, 24, 2, .together = 5, .n_local = 2},
    {1, 64, 3, .together = 1, .n_local = 1, .integers = true},
    {2, 7, 1, .together = 100},
    {2, 3, 5, .together = 3, .n_local = 9, .integers = true},
    {2, 65, 64, .integers = true},
    {4, 8, 3, .weighted = true, .pool = 4, .given = true, .integers = true},
    {3, 12, 1, .as_one = true, .pool = 7, .given = true},
    {2, 5, 0, .weighted = true, .pool = 9, .given = true},
    {5, 6, 2, .as_one = true, .pool = 3, .together = 2, .n_local = 1, .given = true,
     .integers = true},
    {3, 7, 2, .as_one = true, .pool = 4, .fill = true, .given = true, .integers = true},
    {1, 12, 3, .weighted = true, .pool = 3, .fill = true, .given = true},
};

struct choose_shape choose_scene_shape(size_t i)
{
    return shapes[i];
}

static float *random_floats(struct rng *r, size_t n, bool integers)
{
    float *x = malloc(n * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++)
        x[i] = integers ? (float)rng_below(r, 3) - 1.0f : rng_normal(r);
    return x;
}

void choose_scene_open(struct choose_scene *s, struct rng *r, const struct choose_shape *shape)
{
    size_t stride = shape->head_size + rng_below(r, 2) * 3, n_rows = ROWS + shape->n_last;
    *s = (struct choose_scene){
        .n_q = n_rows * shape->n_heads * shape->head_size,
        .n_k = (n_rows + (shape->given ? MOST_GIVEN : 0)) * stride,
        .n_weights = n_rows * shape->n_heads,
        .op = {.n_heads = shape->n_heads,
               .head_size = shape->head_size,
               .k_stride = stride,
               .as_one = shape->as_one,
               .n_best = shape->n_best,
               .pool = shape->pool,
               .fill = shape->fill,
               .together = shape->together ? shape->together : 1,
               .n_local = shape->n_local,
               .most_keys = MOST + rng_below(r, 100),
               .ranges = s->ranges,
               .n_ranges = CHOOSE_SCENE_RANGES},
    };
    memcpy(s->ranges, ranges, sizeof ranges);
    s->ranges[CHOOSE_SCENE_RANGES - 1].n_q = shape->n_last;
    s->op.q = s->q = random_floats(r, s->n_q, shape->integers);
    s->op.k = s->k = random_floats(r, s->n_k, shape->integers);
    s->weights = random_floats(r, s->n_weights, shape->integers);
    s->op.weights = shape->weighted ? s->weights : NULL;
    /* Products that vanish are +0 and -0. */
    for (size_t i = 0; i < s->n_k; i += 11)
        s->k[i] = i % 2 ? 0x1p-140f : -0x1p-140f;
    for (size_t i = 0; i < s->n_q; i += 17)
        s->q[i] = 0x1p-140f;
    s->n_seen = calloc(n_rows, sizeof *s->n_seen);
    assert_non_null(s->n_seen);
    for (size_t i = 0; i < n_rows; i++)
        s->n_seen[i] = (uint32_t)rng_below(r, MOST_GIVEN);
    s->op.n_seen = shape->given ? s->n_seen : NULL;
    s->n_words = n_rows * kern_choose_sets(&s->op) * kern_chosen_words(s->op.most_keys);
    s->op.bits = s->bits = malloc(s->n_words * sizeof *s->bits);
    assert_non_null(s->bits);
    for (size_t i = 0; i < s->n_words; i++)
        s->bits[i] = UINT64_MAX;
}

void choose_scene_close(struct choose_scene *s)
{
    free(s->q);
    free(s->k);
    free(s->weights);
    free(s->n_seen);
    free(s->bits);
}

static float score_of(const struct kern_choose *op, const struct kern_query_range *range,
                      size_t row, size_t set, size_t key)
{
    size_t sets = kern_choose_sets(op), n_heads = op->n_heads / sets;
    size_t key_row =
        key < range->n_parent ? range->parent_kv_row + key : range->kv_row + key - range->n_parent;
    float sum = 0.0f;
    for (size_t head = set * n_heads; head < (set + 1) * n_heads; head++) {
        float dot = 0.0f;
        for (size_t i = 0; i < op->head_size; i++)
            dot = fmaf(op->k[key_row * op->k_stride + i],
                       op->q[(row * op->n_heads + head) * op->head_size + i], dot);
        if (!op->weights && !op->as_one)
            return dot;
        float weight = op->weights ? op->weights[row * op->n_heads + head] : 1.0f;
        volatile float product = weight * fmaxf(dot, 0.0f);
        sum = sum + product;
    }
    return sum;
}

/** Scores of the runs of keys that a query sees; returns how many positions these have with what
 * follows. */
static size_t find_scores(const struct kern_choose *op, const struct kern_query_range *range,
                          size_t query, size_t set, float *scores)
{
    size_t seen = range->n_parent + range->q_offset + query + 1, row = range->q_row + query;
    if (op->n_seen)
        seen = op->n_seen[row];
    size_t n_keys = seen / kern_choose_pool(op), n = (n_keys + op->together - 1) / op->together;
    for (size_t i = 0; i < n; i++)
        scores[i] = i + op->n_local >= n ? INFINITY : -INFINITY;
    for (size_t key = 0; key < n_keys; key++)
        scores[key / op->together] =
            fmaxf(scores[key / op->together], score_of(op, range, row, set, key));
    return seen;
}

static void check_query(const struct choose_scene *s, const uint64_t *bits, size_t range,
                        size_t query, size_t set)
{
    const struct kern_choose *op = &s->op;
    size_t n_words = kern_chosen_words(op->most_keys);
    float scores[MOST];
    size_t n_seen = find_scores(op, &op->ranges[range], query, set, scores);
    size_t pool = kern_choose_pool(op), n_keys = n_seen / pool;
    size_t n = (n_keys + op->together - 1) / op->together;
    for (size_t at = 0; at < n_words * 64; at++) {
        size_t better = 0, key = at / pool, a = key / op->together;
        for (size_t b = 0; key < n_keys && b < n; b++)
            better += scores[b] > scores[a] || (scores[b] == scores[a] && b < a);
        size_t rest = op->fill && better == op->n_best ? pool - 1 - n_seen % pool : 0;
        bool chosen = at < n_seen && (key == n_keys || better < op->n_best || at % pool < rest);
        if ((bits[at / 64] >> at % 64 & 1) != chosen)
            fail_msg("range %zu query %zu set %zu: position %zu of %zu is%s chosen", range, query,
                     set, at, n_seen, chosen ? " not" : "");
    }
}

void choose_scene_check(const struct choose_scene *s, const uint64_t *bits)
{
    size_t sets = kern_choose_sets(&s->op), n_words = kern_chosen_words(s->op.most_keys);
    for (size_t i = 0; i < s->op.n_ranges; i++)
        for (size_t q = 0; q < s->op.ranges[i].n_q * sets; q++)
            check_query(s, bits + (s->op.ranges[i].q_row * sets + q) * n_words, i, q / sets,
                        q % sets);
}
