/** Arrays that grow as items are appended, and arrays of a known number of items. */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include <stddef.h>

#include "base/status.h"

/**
 * Make room for n items in `array` (a pointer to items, NULL at first) of `capacity` items (a
 * size_t): by half as many again at least, so that appending costs O(1) on average. Both have to be
 * lvalues; free() releases the array. Contents are kept; new items are not initialised.
 * Fails: STATUS_MEMORY, "no memory for <n> <what>"; then array and capacity are as they were.
 */
#define base_array_reserve(array, capacity, n, what, why)                                          \
    base_array_reserve_items((void *)&(array), &(capacity), n, sizeof *(array), what, why)

/**
 * Set `array` (a pointer to items; an lvalue) to n items that are zero, and never to NULL unless it
 * fails: STATUS_MEMORY, "no memory for <n> <what>". free() releases it.
 */
#define base_array_new(array, n, what, why)                                                        \
    base_array_new_items((void *)&(array), n, sizeof *(array), what, why)

/* What the macros call. `array` points to the pointer, of whatever type, which is read and written
 * as bytes. */
enum status base_array_extend(void *array, size_t *capacity, size_t n, size_t item_bytes,
                              const char *what, struct status_why *why);
enum status base_array_new_items(void *array, size_t n, size_t item_bytes, const char *what,
                                 struct status_why *why);

static inline enum status base_array_reserve_items(void *array, size_t *capacity, size_t n,
                                                   size_t item_bytes, const char *what,
                                                   struct status_why *why)
{
    return n <= *capacity ? STATUS_OK
                          : base_array_extend(array, capacity, n, item_bytes, what, why);
}

/**
 * The same growth where a failure is no status: returns the array, which may have moved, or NULL if
 * there is no memory. n is at least 1; *capacity follows.
 */
void *base_array_grow(void *array, size_t *capacity, size_t n, size_t item_bytes);

#endif
