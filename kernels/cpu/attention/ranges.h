/** Ranges of queries cut into tasks, and where their keys lie. */
#ifndef KERNELS_CPU_ATTENTION_RANGES_H
#define KERNELS_CPU_ATTENTION_RANGES_H

#include "base/arithmetic.h"
#include "kernels/types.h"

/** first[i] = tasks of up to n_queries queries in the ranges before i; first[n_ranges]: of all. */
static inline void kern_count_tasks(size_t *first, const struct kern_query_range *ranges,
                                    size_t n_ranges, size_t n_queries)
{
    first[0] = 0;
    for (size_t i = 0; i < n_ranges; i++)
        first[i + 1] = first[i] + base_div_up(ranges[i].n_q, n_queries);
}

/** The range whose tasks contain `number`. */
static inline size_t kern_find_range(const size_t *first, size_t n_ranges, size_t number)
{
    size_t low = 0, high = n_ranges;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (first[middle] <= number)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/** Index of the own key of a query of the range. */
static inline size_t kern_query_key(const struct kern_query_range *range, size_t query)
{
    return range->n_parent + range->q_offset + query;
}

/** The row of a key, in the parent or in the segment. */
static inline size_t kern_key_row(const struct kern_query_range *range, size_t key)
{
    return key < range->n_parent ? range->parent_kv_row + key
                                 : range->kv_row + key - range->n_parent;
}

#endif
