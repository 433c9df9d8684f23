/** Comparing arrays of floats, to the bit or in units of the last place. */
#ifndef TESTS_HARNESS_COMPARE_H
#define TESTS_HARNESS_COMPARE_H

#include <stddef.h>
#include <stdint.h>

/**
 * The index of the first element whose bits differ, or n. The sign of zero counts; two NaNs are
 * equal whatever their sign and payload.
 */
size_t compare_bits(const float *found, const float *expected, size_t n);

/**
 * How many floats lie between a and b, plus one if they differ; 0 for equal numbers (also for
 * 0 and -0, and for two NaNs), UINT32_MAX if just one is NaN.
 */
uint32_t compare_ulps(float a, float b);

/** The bits of a float, for messages. */
uint32_t compare_float_bits(float value);

#endif
