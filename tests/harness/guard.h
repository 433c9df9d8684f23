/**
 * Buffers between two inaccessible pages: an access beyond either end stops the program, at
 * the instruction that did it, with or without a sanitizer (intrinsics included).
 */
#ifndef TESTS_HARNESS_GUARD_H
#define TESTS_HARNESS_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** One buffer; `data` and `n_bytes` are for the test, the rest is private. */
struct guard {
    uint8_t *data;
    size_t n_bytes;
    size_t slack;
    uint8_t *pages;
    size_t pages_bytes;
};

/**
 * A buffer of n_bytes (0 is allowed) that ends `slack` bytes before an inaccessible page: with
 * slack 0 the first byte after the buffer faults, other values choose an alignment. The buffer
 * starts out filled with 0xa5, and so does the room around it. Stops the program when there is
 * no memory.
 */
struct guard guard_open(size_t n_bytes, size_t slack);

/** Whether the bytes around the buffer still are as guard_open left them. */
bool guard_intact(const struct guard *g);

/** Release the buffer. */
void guard_close(struct guard *g);

#endif
