/**
 * A set of distinct strings, numbered in the order in which they were added.
 *
 * An open-addressing hash table: adding and finding cost O(length). The hash is drawn at
 * random per table, so that no file can be made whose names all collide; what is found does
 * not depend on it. The strings' bytes are not copied and must outlive the table.
 */
#ifndef GGUF_NAMES_H
#define GGUF_NAMES_H

#include <stdbool.h>

#include "gguf/file.h"

struct gguf_name {
    struct gguf_string string;
    uint64_t hash;
};

/** Zero-initialised is a valid, empty object. */
struct gguf_names {
    struct gguf_name *entries;
    size_t n_entries, capacity;
    size_t *slots;   /* 1 + index of an entry, or 0 */
    unsigned n_bits; /* the table has 2^n_bits slots once there are any */
    uint64_t base;   /* of the hash polynomial */
};

/** What gguf_names_find returns where there is no such string. */
#define GGUF_NAMES_NONE SIZE_MAX

/**
 * Add a string; its index is the number of strings before it.
 * *added is false if it was there already.   Fails: STATUS_MEMORY.
 */
enum status gguf_names_add(struct gguf_names *names, struct gguf_string string, bool *added,
                           struct status_why *why);

/** Index of a string, or GGUF_NAMES_NONE. */
size_t gguf_names_find(const struct gguf_names *names, struct gguf_string string);

/** Release the table; a zero-initialised or released object is allowed. */
void gguf_names_free(struct gguf_names *names);

#endif
