#include "model/forward/runs/runs.h"

/** Runs of a range's sequence that are complete before its queries, and with them. */
static size_t runs_before(const struct kern_query_range *range, size_t run)
{
    return (range->n_parent + range->q_offset) / run;
}

static size_t runs_after(const struct kern_query_range *range, size_t run)
{
    return (range->n_parent + range->q_offset + range->n_q) / run;
}

struct model_new_runs model_runs_ranges(const struct kern_query_range *ranges, size_t n_ranges,
                                        size_t run, struct kern_query_range *out)
{
    struct model_new_runs made = {0};
    size_t next = 0, parent_row = 0; /* a parent of an earlier tile is kept from row 0 on */
    for (size_t i = 0; i < n_ranges; i++) {
        size_t of_parent = ranges[i].n_parent / run;
        if (i == 0)
            next = of_parent;
        if (ranges[i].n_parent == 0)
            parent_row = next;
        out[i] = ranges[i];
        out[i].kv_row = next;
        out[i].parent_kv_row = parent_row;
        out[i].n_parent = of_parent;
        if (i == 0)
            made.first = next + runs_before(&ranges[i], run) - of_parent;
        next += runs_after(&ranges[i], run) - of_parent;
    }
    made.n = next - made.first;
    return made;
}

/** The row of token t of a range's sequence. */
static uint32_t token_row(const struct kern_query_range *range, size_t t)
{
    return (uint32_t)(t < range->n_parent ? range->parent_kv_row + t
                                          : range->kv_row + t - range->n_parent);
}

void model_runs_terms(const struct kern_query_range *ranges, size_t n_ranges, size_t run,
                      bool overlap, uint32_t *rows, int32_t *positions)
{
    for (size_t i = 0; i < n_ranges; i++) {
        size_t after = runs_after(&ranges[i], run);
        for (size_t w = runs_before(&ranges[i], run); w < after; w++) {
            *positions++ = (int32_t)(w * run);
            for (size_t t = 0; overlap && t < run; t++)
                *rows++ = w > 0 ? token_row(&ranges[i], (w - 1) * run + t) : UINT32_MAX;
            for (size_t t = 0; t < run; t++)
                *rows++ = token_row(&ranges[i], w * run + t);
        }
    }
}
