#include "tests/harness/compare.h"

#include <math.h>
#include <string.h>

uint32_t compare_float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

size_t compare_bits(const float *found, const float *expected, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float a, b;
        memcpy(&a, (const char *)found + i * sizeof a, sizeof a); /* any alignment */
        memcpy(&b, (const char *)expected + i * sizeof b, sizeof b);
        if (compare_float_bits(a) != compare_float_bits(b) && !(isnan(a) && isnan(b)))
            return i;
    }
    return n;
}

/** Maps floats to integers in the same order, 0 and -0 to the same one. */
static int64_t float_position(float value)
{
    uint32_t bits = compare_float_bits(value);
    return (bits & 0x80000000u) != 0 ? -(int64_t)(bits & 0x7fffffffu) : (int64_t)bits;
}

uint32_t compare_ulps(float a, float b)
{
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b) ? 0 : UINT32_MAX;
    int64_t distance = float_position(a) - float_position(b);
    return (uint32_t)(distance < 0 ? -distance : distance);
}
