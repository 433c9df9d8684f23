/** A convolution's inputs, and the layout of saved states. */
#ifndef KERNELS_RECURRENT_CHECK_H
#define KERNELS_RECURRENT_CHECK_H

#include "kernels/recurrent.h"
#include "kernels/recurrent/taps.h"

/** The operation's inputs. */
struct kern_tap_rows kern_tap_rows_of(const struct kern_convolve *op);

/** Columns of v that are computed side by side; what is past dv is 0. */
enum { KERN_RECUR_LANES = 32 };

/** Groups of columns that a head has. */
KERN_INLINE size_t kern_recur_n_groups(const struct kern_recur *op)
{
    return (op->v_size + KERN_RECUR_LANES - 1) / KERN_RECUR_LANES;
}

/**
 * A saved state has a record for each head and group of columns, in this order: what S was when the
 * current chunk began [dk][lanes], and of the chunk's tokens so far k [chunk][dk], e [chunk][lanes]
 * and the sums of log decays, in double [chunk]. In the first chunk S is 0 and not written.
 * by_channel: S alone, as it is.
 */
KERN_INLINE size_t kern_recur_record_floats(const struct kern_recur *op)
{
    if (op->by_channel)
        return op->k_size * KERN_RECUR_LANES;
    return op->k_size * (KERN_RECUR_LANES + KERN_CHUNK) + KERN_CHUNK * KERN_RECUR_LANES +
           2 * KERN_CHUNK;
}

#endif
