/** Where a convolution finds the tokens before a token: for the CPU and CUDA. */
#ifndef KERNELS_RECURRENT_TAPS_H
#define KERNELS_RECURRENT_TAPS_H

#include "kernels/portable/portable.h"
#include "kernels/recurrent_types.h"

/** The inputs of a struct kern_convolve. */
struct kern_tap_rows {
    const float *x;
    size_t x_stride;
    float *states; /* each: the last `span` rows [n_channels], the oldest first */
    size_t state_floats, n_taps, n_channels;
    size_t step, span; /* tokens from a tap to the next, and from the first tap to the last */
    const struct kern_run *runs;
};

/** The row of token t - back of a run, t <= n; NULL: before the sequence. back <= span. */
KERN_INLINE const float *kern_tap_row(const struct kern_tap_rows *rows, const struct kern_run *run,
                                      size_t t, size_t back)
{
    if (back > t && run->parent != KERN_NONE) {
        back -= t;
        run = &rows->runs[run->parent];
        t = run->n;
    }
    if (back <= t)
        return rows->x + (run->row + t - back) * rows->x_stride;
    back -= t;
    if (back > run->index)
        return NULL;
    return rows->states + (size_t)run->from * rows->state_floats +
           (rows->span - back) * rows->n_channels;
}

/**
 * Save a channel of a run's last rows. It may have begun with the state that they replace: they go
 * the right way for that.
 */
KERN_INLINE void kern_tap_save(const struct kern_tap_rows *rows, const struct kern_run *run,
                               size_t channel)
{
    float *to = rows->states + (size_t)run->to * rows->state_floats + channel;
    for (size_t back = rows->span; back > 0; back--, to += rows->n_channels) {
        const float *row = kern_tap_row(rows, run, run->n, back);
        if (row)
            *to = row[channel];
    }
}

#endif
