/**
 * A set of distinct strings, numbered from 0 in the order in which they were added.
 *
 * A hash table with open addressing: adding and finding cost O(length). The hash has a random
 * key per table, so that no file can be made whose names all collide; what is found does not
 * depend on it. The strings' bytes are not copied and must outlive the table.
 */
#ifndef BASE_TEXT_STRTAB_H
#define BASE_TEXT_STRTAB_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text/string.h"

/** Zero-initialised is a valid, empty table. */
struct base_strtab {
    struct base_string *strings; /* [n] by number */
    size_t n, capacity;
    struct base_strtab_slot *slots; /* [2 * capacity]; capacity is a power of two, or 0 */
    uint64_t seed;                  /* the hash's key, drawn with the first string */
};

/**
 * Add a string. *number: its number, which is the old t->n unless the string was there already.
 * An empty string always gets a number of its own, and is never found.
 * Fails: STATUS_MEMORY; STATUS_UNSUPPORTED beyond 2^31 - 1 strings.
 */
enum status base_strtab_add(struct base_strtab *t, struct base_string string, int32_t *number,
                            struct status_why *why);

/** Make room for n strings in all at once; n is at most 2^31.   Fails: STATUS_MEMORY. */
enum status base_strtab_reserve(struct base_strtab *t, size_t n, struct status_why *why);

/** The number of a string, or -1. */
int32_t base_strtab_find(const struct base_strtab *t, struct base_string string);

/** Release the table; a zero-initialised or released one is allowed. */
void base_strtab_free(struct base_strtab *t);

#endif
