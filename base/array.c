#include "base/array.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/arithmetic.h"

enum { LEAST = 64 };

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
