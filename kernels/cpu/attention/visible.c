/* Which keys of a block a query sees: causal, in its window or chunk, chosen. */
#include <string.h>

#include "kernels/cpu/attention/task.h"
#include "kernels/portable/chosen.h"

/** First key that the query with this key index sees. */
static size_t window_begin(const struct kern_attention *op, size_t query)
{
    size_t w = op->sliding_window, chunk = op->chunk;
    size_t begin = w > 0 && query + 1 > w ? query + 1 - w : 0;
    return chunk > 0 ? base_max(begin, query / chunk * chunk) : begin;
}

size_t kern_seen_begin(const struct attention_task *task, size_t query)
{
    return task->set.run > 0 ? 0 : window_begin(task->job->op, query);
}

size_t kern_seen_end(const struct attention_task *task, size_t query)
{
    return task->set.run > 0 ? (query + 1) / task->set.run : query + 1;
}

/** Bits begin .. end - 1. */
static uint64_t bits_between(size_t begin, size_t end)
{
    return begin < end ? UINT64_MAX >> (64 - (end - begin)) << begin : 0;
}

/** Which of the keys from `begin` to `end` of a block's lane are not chosen. */
static uint64_t find_hidden(const struct attention_task *task, const struct query_block *block,
                            size_t lane, const struct visible *visible)
{
    const struct kern_chosen *chosen = &task->job->op->chosen;
    size_t begin = (size_t)visible->begin[lane], end = (size_t)visible->end[lane];
    if (!task->set.chosen || begin >= end)
        return 0;
    size_t row = (task->range->q_row + block->first + lane) * chosen->n_sets;
    row += chosen->n_sets > 1 ? task->kv_head : 0;
    const uint64_t *bits = chosen->bits + row * kern_chosen_words(chosen->most_keys);
    return ~kern_chosen_keys(bits, visible->key) & bits_between(begin, end);
}

/** Whether every query of a block without empty lanes sees all of these keys. */
static bool sees_all(const struct attention_task *task, const struct query_block *block, size_t key,
                     size_t n_keys)
{
    size_t first = kern_query_key(task->range, block->first);
    return !task->set.chosen && block->n == KERN_PANEL &&
           kern_seen_end(task, first) >= key + n_keys &&
           kern_seen_begin(task, first + block->n - 1) <= key;
}

bool kern_find_visible(struct visible *visible, const struct attention_task *task,
                       const struct query_block *block, size_t key, size_t n_keys)
{
    bool any = false;
    visible->key = key;
    if (sees_all(task, block, key, n_keys)) {
        for (size_t lane = 0; lane < KERN_PANEL; lane++) {
            visible->begin[lane] = 0;
            visible->end[lane] = (int32_t)n_keys;
        }
        memset(visible->hidden, 0, sizeof visible->hidden);
        return true;
    }
    for (size_t lane = 0; lane < KERN_PANEL; lane++) {
        size_t begin = 0, end = 0;
        if (lane < block->n) {
            size_t query = kern_query_key(task->range, block->first + lane);
            begin = base_max(kern_seen_begin(task, query), key) - key;
            end = base_min(base_max(kern_seen_end(task, query), key) - key, n_keys);
        }
        visible->begin[lane] = (int32_t)base_min(begin, n_keys);
        visible->end[lane] = (int32_t)end;
        visible->hidden[lane] = find_hidden(task, block, lane, visible);
        any |= bits_between(begin, end) > visible->hidden[lane];
    }
    return any;
}

bool kern_sees(const struct visible *visible, size_t lane, size_t j)
{
    return (int32_t)j >= visible->begin[lane] && (int32_t)j < visible->end[lane] &&
           !(visible->hidden[lane] >> j & 1);
}
