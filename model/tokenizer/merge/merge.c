#include "model/tokenizer/merge/merge.h"

#include <stdlib.h>

#include "base/arithmetic.h"
#include "base/array.h"

static size_t round_up(size_t n)
{
    return base_round_up(n, MODEL_MERGE_FANOUT);
}

void model_merge_free(struct model_merge *m)
{
    free(m->other);
    *m = (struct model_merge){0};
}

/** Make room for n slots: `other` and all levels in one block. */
static enum status reserve(struct model_merge *m, size_t n, struct status_why *why)
{
    if (n <= m->capacity)
        return STATUS_OK;
    if (n >= MODEL_MERGE_NONE - MODEL_MERGE_FANOUT)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "%zu characters without a place to cut; expected fewer than 2^32", n);
    model_merge_free(m);
    size_t capacity = round_up(n < 64 ? 64 : n + n / 4);
    size_t words = capacity;
    for (size_t k = capacity;; k = round_up(k / MODEL_MERGE_FANOUT)) {
        words += k;
        if (k <= MODEL_MERGE_FANOUT)
            break;
    }
    if (base_array_new(m->other, words, "words", why))
        return STATUS_MEMORY;
    m->capacity = capacity;
    return STATUS_OK;
}

static uint32_t block_min(const uint32_t *children)
{
    uint32_t min = children[0];
    for (size_t k = 1; k < MODEL_MERGE_FANOUT; k++)
        min = children[k] < min ? children[k] : min;
    return min;
}

/** Lay the levels for n slots after `other`; level 0 is filled, the upper ones follow from it. */
static void build_levels(struct model_merge *m, size_t n)
{
    m->n_levels = 1;
    for (size_t width = round_up(n); width > MODEL_MERGE_FANOUT;) {
        const uint32_t *below = m->level[m->n_levels - 1];
        uint32_t *level = m->level[m->n_levels - 1] + width;
        size_t n_nodes = width / MODEL_MERGE_FANOUT;
        width = round_up(n_nodes);
        for (size_t i = 0; i < n_nodes; i++)
            level[i] = block_min(below + i * MODEL_MERGE_FANOUT);
        for (size_t i = n_nodes; i < width; i++)
            level[i] = MODEL_MERGE_NONE;
        m->level[m->n_levels++] = level;
    }
}

static void set_rank(struct model_merge *m, uint32_t slot, uint32_t rank)
{
    m->level[0][slot] = rank;
    size_t i = slot;
    for (size_t k = 1; k < m->n_levels; k++) {
        i /= MODEL_MERGE_FANOUT;
        uint32_t min = block_min(m->level[k - 1] + i * MODEL_MERGE_FANOUT);
        if (m->level[k][i] == min)
            return;
        m->level[k][i] = min;
    }
}

/** The leftmost slot of the lowest rank. */
static uint32_t first_min(const struct model_merge *m)
{
    size_t node = 0;
    for (size_t k = m->n_levels; k-- > 0;) {
        const uint32_t *children = m->level[k] + node * MODEL_MERGE_FANOUT;
        size_t best = 0;
        for (size_t c = 1; c < MODEL_MERGE_FANOUT; c++)
            best = children[c] < children[best] ? c : best;
        node = node * MODEL_MERGE_FANOUT + best;
    }
    return (uint32_t)node;
}

enum status model_merge_run(struct model_merge *m, size_t n_slots,
                            const struct model_merge_rules *rules, struct status_why *why)
{
    enum status status = reserve(m, n_slots, why);
    if (status)
        return status;
    uint32_t n = (uint32_t)n_slots;
    uint32_t *rank = m->level[0] = m->other + round_up(n);
    for (uint32_t i = 0; i < n; i++) {
        m->other[i] = i;
        rank[i] = i + 1 < n ? rules->rank(rules->user, i, i + 1, i + 2) : MODEL_MERGE_NONE;
    }
    for (size_t i = n; i < round_up(n); i++)
        rank[i] = MODEL_MERGE_NONE;
    build_levels(m, n);

    for (;;) {
        uint32_t left = first_min(m);
        uint32_t lowest = rank[left];
        if (lowest == MODEL_MERGE_NONE)
            return STATUS_OK;
        uint32_t right = m->other[left] + 1;
        uint32_t last = m->other[right];
        uint32_t end = last + 1;
        set_rank(m, right, MODEL_MERGE_NONE);
        m->other[left] = last;
        m->other[last] = left;
        if (rules->joined)
            rules->joined(rules->user, left, lowest);
        set_rank(m, left,
                 end < n ? rules->rank(rules->user, left, end, m->other[end] + 1)
                         : MODEL_MERGE_NONE);
        if (left > 0) {
            uint32_t before = m->other[left - 1];
            set_rank(m, before, rules->rank(rules->user, before, left, end));
        }
    }
}
