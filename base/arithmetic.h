/** Sums and comparisons of sizes that every layer needs. */
#ifndef BASE_ARITHMETIC_H
#define BASE_ARITHMETIC_H

#include <stddef.h>

/** The smaller of two sizes. */
static inline size_t base_min(size_t a, size_t b)
{
    return a < b ? a : b;
}

/** The larger of two sizes. */
static inline size_t base_max(size_t a, size_t b)
{
    return a > b ? a : b;
}

/** How many parts of `unit` (above 0) hold n: the quotient, rounded up. */
static inline size_t base_div_up(size_t n, size_t unit)
{
    return n / unit + (n % unit != 0);
}

/** The least multiple of `unit` (above 0) that is not below n. */
static inline size_t base_round_up(size_t n, size_t unit)
{
    return base_div_up(n, unit) * unit;
}

#endif
