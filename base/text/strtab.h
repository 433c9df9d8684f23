/** A hash table from strings to their index in an array. */
#ifndef BASE_TEXT_STRTAB_H
#define BASE_TEXT_STRTAB_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text/string.h"

/** Zero-initialise; read only through the functions below. */
struct base_strtab {
    struct base_strtab_slot *slots;
    size_t mask;
    uint64_t seed;
    const struct base_string *keys;
};

/**
 * Index keys[0..n_keys), which must outlive the table. Empty strings are left out.
 * Fails: STATUS_MEMORY; STATUS_FORMAT if two keys are equal (the sentence has both indices).
 * Cost: O(total bytes).
 */
enum status base_strtab_init(struct base_strtab *t, const struct base_string *keys, size_t n_keys,
                             struct status_why *why);
void base_strtab_free(struct base_strtab *t);

/** Index of the key with exactly these bytes, or -1. */
int32_t base_strtab_find(const struct base_strtab *t, const char *bytes, size_t n_bytes);

#endif
