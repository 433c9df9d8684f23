/**
 * Allocations that fail when a test says so. Link a test program with assay_failing_alloc: it
 * replaces malloc, calloc, realloc, aligned_alloc, posix_memalign and strdup in all that is linked
 * statically; libraries that are loaded keep theirs.
 */
#ifndef TESTS_HARNESS_FAILING_ALLOC_H
#define TESTS_HARNESS_FAILING_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

/** Let the allocation that comes after n others fail; with and_all_later all that follow, too. */
void failing_alloc_begin(size_t n, bool and_all_later);

/** From here on none fails. Returns whether one did. */
bool failing_alloc_end(void);

#endif
