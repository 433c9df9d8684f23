/** Memory of the CPU backend. */
#ifndef KERNELS_CPU_MEMORY_H
#define KERNELS_CPU_MEMORY_H

#include <stddef.h>

/**
 * n_bytes (0 is allowed) aligned to 64, contents undefined; NULL if there are none.
 * Large blocks come from the system and go back to it when they are freed, so that what was said
 * about memory before a run holds for the second run of a process too; the largest lie on huge
 * pages where the system has them.
 */
void *kern_memory_new(size_t n_bytes);

/** NULL is allowed. */
void kern_memory_free(void *memory);

#endif
