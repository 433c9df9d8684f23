/**
 * A set of distinct strings, numbered in the order in which they were added.
 *
 * An open-addressing hash table: adding and finding cost O(length). The hash is drawn at
 * random per table, so that no file can be made whose names all collide; what is found does
 * not depend on it. The strings' bytes are not copied and must outlive the table.
 */
#ifndef BASE_TEXT_NAMES_H
#define BASE_TEXT_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text/string.h"

struct base_name {
    struct base_string string;
    uint64_t hash;
};

/** Zero-initialised is a valid, empty object. */
struct base_names {
    struct base_name *entries;
    size_t n_entries, capacity;
    size_t *slots;   /* 1 + index of an entry, or 0 */
    unsigned n_bits; /* the table has 2^n_bits slots once there are any */
    uint64_t base;   /* of the hash polynomial */
};

/** What base_names_find returns where there is no such string. */
#define BASE_NAMES_NONE SIZE_MAX

/**
 * Add a string; its index is the number of strings before it.
 * *added is false if it was there already.   Fails: STATUS_MEMORY.
 */
enum status base_names_add(struct base_names *names, struct base_string string, bool *added,
                           struct status_why *why);

/** Index of a string, or BASE_NAMES_NONE. */
size_t base_names_find(const struct base_names *names, struct base_string string);

/** Release the table; a zero-initialised or released object is allowed. */
void base_names_free(struct base_names *names);

#endif
