#include "base/array.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"

enum { LEAST = 64 };

static enum status no_memory(size_t n, const char *what, struct status_why *why)
{
    return status_fail(why, STATUS_MEMORY, "no memory for %zu %s", n, what);
}

void *base_array_grow(void *array, size_t *capacity, size_t n, size_t item_bytes)
{
    if (n <= *capacity)
        return array;
    size_t wanted = base_max(base_max(n, *capacity + *capacity / 2), LEAST);
    void *grown = wanted <= SIZE_MAX / item_bytes ? realloc(array, wanted * item_bytes) : NULL;
    if (grown)
        *capacity = wanted;
    return grown;
}

enum status base_array_extend(void *array, size_t *capacity, size_t n, size_t item_bytes,
                              const char *what, struct status_why *why)
{
    void *items;
    memcpy(&items, array, sizeof items);
    items = base_array_grow(items, capacity, n, item_bytes);
    if (!items)
        return no_memory(n, what, why);
    memcpy(array, &items, sizeof items);
    return STATUS_OK;
}

enum status base_array_new_items(void *array, size_t n, size_t item_bytes, const char *what,
                                 struct status_why *why)
{
    void *items = calloc(n + !n, item_bytes);
    memcpy(array, &items, sizeof items);
    return items ? STATUS_OK : no_memory(n, what, why);
}
