/** What a test does without cmocka, which fuzz targets have not: stop where something is wrong. */
#ifndef TESTS_HARNESS_REQUIRE_H
#define TESTS_HARNESS_REQUIRE_H

#include <stdbool.h>
#include <stdlib.h>

/** Aborts, so that a fuzzer keeps the input. */
static inline void require(bool condition)
{
    if (!condition)
        abort();
}

#endif
