#include "kernels/recurrent/check.h"

#include <assert.h>

#include "kernels/types.h"

/** Tokens before its own that a token's convolution sees. */
static size_t span_of(const struct kern_convolve *op)
{
    return (op->weight->n_cols - 1) * (op->step > 0 ? op->step : 1);
}

size_t kern_convolve_state_bytes(const struct kern_convolve *op)
{
    size_t n = span_of(op) * op->weight->n_rows * sizeof(float);
    return (n + 63) / 64 * 64;
}

struct kern_tap_rows kern_tap_rows_of(const struct kern_convolve *op)
{
    return (struct kern_tap_rows){.x = op->x,
                                  .x_stride = op->x_stride,
                                  .states = op->states,
                                  .state_floats = kern_convolve_state_bytes(op) / sizeof(float),
                                  .n_taps = op->weight->n_cols,
                                  .n_channels = op->weight->n_rows,
                                  .step = op->step > 0 ? op->step : 1,
                                  .span = span_of(op),
                                  .runs = op->runs};
}

size_t kern_recur_state_bytes(const struct kern_recur *op)
{
    return op->n_heads * kern_recur_n_groups(op) * kern_recur_record_floats(op) * sizeof(float);
}

/** root: the last run without a parent before this one, or n_runs. */
static bool goes_on(const struct kern_run *runs, size_t i, size_t root, size_t n_runs)
{
    const struct kern_run *run = &runs[i];
    if (run->index == 0)
        return run->parent == KERN_NONE && run->from == KERN_NONE;
    if (run->parent == KERN_NONE)
        return run->from >= 0;
    return run->from == KERN_NONE && root < n_runs && run->parent == (ptrdiff_t)root &&
           run->index == runs[root].index + runs[root].n;
}

enum status kern_runs_check(const struct kern_run *runs, size_t n_runs, const char *role,
                            struct status_why *why)
{
    size_t root = n_runs;
    for (size_t i = 0; i < n_runs; i++) {
        if (runs[i].n == 0 || runs[i].to < KERN_NONE || !goes_on(runs, i, root, n_runs))
            return status_fail(why, STATUS_USAGE,
                               "%s: run %zu has %zu tokens from index %zu on, goes on from run %td "
                               "and from state %td",
                               role, i, runs[i].n, runs[i].index, runs[i].parent, runs[i].from);
        if (runs[i].parent == KERN_NONE)
            root = i;
        /* Few runs save their state: one or two of a call. */
        for (size_t j = 0; runs[i].to >= 0 && j < n_runs; j++) {
            if (j != i && (runs[j].to == runs[i].to || runs[j].from == runs[i].to))
                return status_fail(why, STATUS_USAGE,
                                   "%s: run %zu saves state %td, which run %zu has, too", role, i,
                                   runs[i].to, j);
        }
    }
    return STATUS_OK;
}

enum status kern_recur_check(const struct kern_recur *op, struct status_why *why)
{
    assert(op->n_k_heads > 0 && op->n_heads > 0 && op->k_size > 0 && op->v_size > 0);
    if (op->n_heads % op->n_k_heads != 0)
        return status_fail(why, STATUS_USAGE, "recur: %zu heads cannot share %zu key heads evenly",
                           op->n_heads, op->n_k_heads);
    if (op->by_channel ? !op->beta || op->skip : op->least_log != 0)
        return status_fail(why, STATUS_USAGE, "recur: decays of channels are a delta net's");
    return kern_runs_check(op->runs, op->n_runs, "recur", why);
}
