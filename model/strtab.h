/** A hash table from strings to their index in an array. */
#ifndef MODEL_STRTAB_H
#define MODEL_STRTAB_H

#include "gguf/file.h"

/** Zero-initialise; read only through the functions below. */
struct model_strtab {
    struct model_strtab_slot *slots;
    size_t mask;
    uint64_t seed;
    const struct gguf_string *keys;
};

/**
 * Index keys[0..n_keys), which must outlive the table. Empty strings are left out.
 * Fails: STATUS_MEMORY; STATUS_FORMAT if two keys are equal (the sentence has both indices).
 * Cost: O(total bytes).
 */
enum status model_strtab_init(struct model_strtab *t, const struct gguf_string *keys, size_t n_keys,
                              struct status_why *why);
void model_strtab_free(struct model_strtab *t);

/** Index of the key with exactly these bytes, or -1. */
int32_t model_strtab_find(const struct model_strtab *t, const char *bytes, size_t n_bytes);

#endif
