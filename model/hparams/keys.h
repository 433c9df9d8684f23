/**
 * Reading the keys of one architecture: the suffix "block_count" stands for "llama.block_count"
 * where general.architecture is "llama".
 *
 * Every function fails with STATUS_FORMAT. The sentence names the file and the key, and says what
 * was found and what was expected. A key counts as read once a function has looked it up.
 */
#ifndef MODEL_HPARAMS_KEYS_H
#define MODEL_HPARAMS_KEYS_H

#include "gguf/meta.h"
#include "model/hparams/table.h"

/** Where keys are read from. */
struct model_keys {
    const struct gguf_file *file;
    const char *prefix; /* the architecture, NUL-terminated */
    bool *read;         /* for each pair of the file, whether it was looked up */
};

enum { MODEL_KEY_BYTES = 192 };
/** Write the whole key of a suffix. A key that is too long is cut at the end of the array. */
void model_key_name(const struct model_keys *keys, const char *suffix, char key[MODEL_KEY_BYTES]);

/** The pair of a suffix; NULL where the file has none. */
const struct gguf_kv *model_key_find(const struct model_keys *keys, const char *suffix);

/** Fail where the file lacks the key. expected: what its value should be, "a float". */
enum status model_key_require(const struct model_keys *keys, const char *suffix,
                              const char *expected, struct status_why *why);

/** Read a whole number. A file without the key is an error. */
enum status model_key_u32_required(const struct model_keys *keys, const char *suffix,
                                   struct model_range range, uint32_t *value,
                                   struct status_why *why);

/**
 * Read a whole number. *value becomes `otherwise` where the file lacks the key, and also when this
 * fails. `otherwise` need not be within the range.
 */
enum status model_key_u32_or(const struct model_keys *keys, const char *suffix,
                             struct model_range range, uint32_t otherwise, uint32_t *value,
                             struct status_why *why);

/* These read what the file has. Where it lacks the key, the caller's values stay. */

/** A truth value. */
enum status model_key_bool(const struct model_keys *keys, const char *suffix, bool *value,
                           struct status_why *why);

/** A finite float. */
enum status model_key_f32(const struct model_keys *keys, const char *suffix, float *value,
                          struct status_why *why);

/**
 * A whole number for each of n_layers layers, from an array of so many, or from one number for all.
 * Truth values count as 0 and 1.
 */
enum status model_key_per_layer(const struct model_keys *keys, const char *suffix,
                                struct model_range range, uint32_t *values, uint32_t n_layers,
                                struct status_why *why);

/** A finite float for each of n_layers layers, likewise. */
enum status model_key_floats(const struct model_keys *keys, const char *suffix, float *values,
                             uint32_t n_layers, struct status_why *why);

/** A truth value for each of n_layers layers, likewise. */
enum status model_key_bools(const struct model_keys *keys, const char *suffix, bool *values,
                            uint32_t n_layers, struct status_why *why);

#endif
