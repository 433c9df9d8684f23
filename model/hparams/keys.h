/**
 * Reading the keys of one architecture: "llama.block_count" is suffix "block_count" with the
 * prefix that general.architecture gives. All failures are STATUS_FORMAT and name the file, the
 * key, what was found and what was expected.
 */
#ifndef MODEL_HPARAMS_KEYS_H
#define MODEL_HPARAMS_KEYS_H

#include "gguf/meta.h"

/** Where keys are read from. */
struct model_keys {
    const struct gguf_file *file;
    const char *prefix; /* the architecture, NUL-terminated */
    bool *read;         /* for each pair of the file, whether it was looked up */
};

enum { MODEL_KEY_BYTES = 192 };
/** The whole key of a suffix, cut at the end of the array. */
void model_key_name(const struct model_keys *keys, const char *suffix, char key[MODEL_KEY_BYTES]);

/** Values that a whole number may take, both ends included. */
struct model_range {
    uint32_t low, high;
};

/**
 * A whole number. found NULL: the key is required. Otherwise *found tells whether it exists,
 * and where it does not, *value keeps what the caller put there.
 */
enum status model_key_u32(const struct model_keys *keys, const char *suffix,
                          struct model_range range, uint32_t *value, bool *found,
                          struct status_why *why);

/** A truth value; optional: *value keeps what the caller put there. */
enum status model_key_bool(const struct model_keys *keys, const char *suffix, bool *value,
                           struct status_why *why);

/** An array of n truth values; optional: values keeps what the caller put there. */
enum status model_key_bools(const struct model_keys *keys, const char *suffix, bool *values,
                            uint32_t n, struct status_why *why);

/** The pair of a suffix, NULL where there is none; it counts as read. */
const struct gguf_kv *model_key_find(const struct model_keys *keys, const char *suffix);

/** A finite float; optional: *value keeps what the caller put there. */
enum status model_key_f32(const struct model_keys *keys, const char *suffix, float *value,
                          bool *found, struct status_why *why);

/**
 * A whole number per layer, from an array of n_layers or from one number for all; truth values
 * are 0 and 1. values: n_layers, filled by the caller with the default. found as above.
 */
enum status model_key_per_layer(const struct model_keys *keys, const char *suffix,
                                struct model_range range, uint32_t *values, uint32_t n_layers,
                                bool *found, struct status_why *why);

#endif
