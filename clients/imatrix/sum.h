/** Sums of squares as numbers of 128 bits, and the floats of files that are nearest to them. */
#ifndef IMATRIX_SUM_H
#define IMATRIX_SUM_H

#include "clients/imatrix/imatrix.h"

__extension__ typedef unsigned __int128 imat_wide;
__extension__ typedef __int128 imat_signed;

/** The sum in quanta. */
static inline imat_wide imat_sum_quanta(struct imat_sum s)
{
    return (imat_wide)s.whole << 64 | s.part;
}

static inline struct imat_sum imat_sum_of(imat_wide quanta)
{
    return (struct imat_sum){.part = (uint64_t)quanta, .whole = (uint64_t)(quanta >> 64)};
}

/** The nearest float, the nearest double; of two, the even one. */
static inline float imat_sum_float(struct imat_sum s)
{
    return (float)imat_sum_quanta(s) * (float)IMAT_QUANTUM;
}

static inline double imat_sum_double(struct imat_sum s)
{
    return (double)imat_sum_quanta(s) * IMAT_QUANTUM;
}

/**
 * The exact sum less the float that is nearest to it, in quanta. A float that is nearest to a sum
 * is a whole number of quanta, so this is one.
 */
static inline imat_signed imat_sum_remainder(struct imat_sum s)
{
    return (imat_signed)(imat_sum_quanta(s) - (imat_wide)((double)imat_sum_float(s) * 0x1p64));
}

#endif
