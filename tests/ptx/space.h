/** Global memory: what the device allocated, and the program's arrays. */
#ifndef TESTS_PTX_SPACE_H
#define TESTS_PTX_SPACE_H

#include "tests/ptx/shadow.h"

struct ptx_allocation {
    uint8_t *memory;
    size_t n_bytes;
    bool is_constant;
    struct ptx_shadow shadow;
    uint8_t *seen; /* which sectors a launch touched: traffic.c; else NULL */
};

struct ptx_space {
    struct ptx_allocation *list;
    size_t n, capacity;
};

void ptx_space_add(struct ptx_space *s, void *memory, size_t n_bytes);
/** The same of an array that the program brings along: it is written, and may not be again. */
void ptx_space_add_constant(struct ptx_space *s, void *memory, size_t n_bytes);
void ptx_space_remove(struct ptx_space *s, const void *memory);

/** The allocation of this address, or NULL. hint: number of a likely one, which is changed. */
struct ptx_allocation *ptx_space_find(const struct ptx_space *s, uint64_t address, uint32_t *hint);

#endif
