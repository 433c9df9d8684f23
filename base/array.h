/** Arrays that grow as items are appended. */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include <stddef.h>

/**
 * Make room for n items (at least 1) in an array of *capacity items, by half as many again at
 * least, so that appending costs O(1) on average. Contents are kept.
 * Returns the array, which may have moved, or NULL if there is no memory: then the old array and
 * *capacity are as they were.
 */
void *base_array_grow(void *array, size_t *capacity, size_t n, size_t item_bytes);

#endif
