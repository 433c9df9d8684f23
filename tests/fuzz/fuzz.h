/**
 * What a fuzz target is: one function, given any bytes. It must return (0) whatever they
 * are, and abort where it meets a result that contradicts itself. It is linked either with
 * libFuzzer (preset `asan-ubsan`) or with replay.c, which feeds it the files of a corpus.
 *
 * A new target is fuzz_<name>.c with this function, a few small inputs in corpus/<name>/ and
 * a line in CMakeLists.txt.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tests/harness/require.h"

/** The input in memory of its own, with a sanitizer's fence after its last byte; free(). */
static inline void *fuzz_copy(const uint8_t *data, size_t n_bytes)
{
    void *copy = malloc(n_bytes ? n_bytes : 1);
    require(copy != NULL);
    if (n_bytes)
        memcpy(copy, data, n_bytes);
    return copy;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

#endif
