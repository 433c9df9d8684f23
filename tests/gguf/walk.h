/** Look at everything that an opened file offers; for the tests that open hostile files. */
#ifndef TESTS_GGUF_WALK_H
#define TESTS_GGUF_WALK_H

#include "gguf/meta.h"

/**
 * Read every value through every look-up, both ends of every tensor's data, and abort where
 * the answers contradict each other. Sanitizers see what reaches beyond the file.
 */
void walk_file(const struct gguf_file *file);

/**
 * Open bytes and walk the result; abort if a refusal has no sentence or leaves an object.
 * Returns what opening returned.
 */
enum status walk_bytes(const void *data, size_t n_bytes, struct status_why *why);

#endif
