/** Walking the tensor types, for tests and benchmarks. */
#ifndef TESTS_HARNESS_TYPES_H
#define TESTS_HARNESS_TYPES_H

#include "gguf/type.h"

/** The i-th type that can be decoded, by id, those of folders last; NULL past the end. */
static inline const struct gguf_type_info *type_at(size_t i)
{
    for (uint32_t id = 0; id < GGUF_TYPE_LIMIT; id++)
        if (gguf_type_info(id) && i-- == 0)
            return gguf_type_info(id);
    return NULL;
}

#endif
