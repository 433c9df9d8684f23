/**
 * Reading the keys of one architecture: the suffix "block_count" stands for "llama.block_count"
 * where general.architecture is "llama".
 *
 * The first failure is kept, and later calls go on with neutral values: what reads keys is a list
 * of them, and whoever began it asks once (status_of). Failures are STATUS_FORMAT; the sentence
 * names the file and the key, and says what was found and what was expected. A key counts as read
 * once a function has looked it up.
 */
#ifndef MODEL_HPARAMS_KEYS_H
#define MODEL_HPARAMS_KEYS_H

#include "gguf/meta.h"
#include "model/hparams/table.h"

/** Where keys are read from. */
struct model_keys {
    const struct gguf_file *file;
    const char *prefix;       /* the architecture, NUL-terminated */
    bool *read;               /* for each pair of the file, whether it was looked up */
    struct status_kept *kept; /* the first failure */
};

enum { MODEL_KEY_BYTES = 192 };
/** Write the whole key of a suffix. A key that is too long is cut at the end of the array. */
void model_key_name(const struct model_keys *keys, const char *suffix, char key[MODEL_KEY_BYTES]);

/** The pair of a suffix; NULL where the file has none. */
const struct gguf_kv *model_key_find(const struct model_keys *keys, const char *suffix);

/** Keep a failure (printf format): the sentence begins with the file. */
void model_keys_fail(const struct model_keys *keys, enum status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/** Keep a failure of a key: the sentence begins with the file and the key. */
void model_key_fail(const struct model_keys *keys, enum status code, const char *suffix,
                    const char *format, ...) __attribute__((format(printf, 4, 5)));

/** Fail where the file lacks the key. expected: what its value should be, "a float". */
void model_key_require(const struct model_keys *keys, const char *suffix, const char *expected);

/** A whole number that must be there; after a failure the least of the range. */
uint32_t model_key_u32(const struct model_keys *keys, const char *suffix, struct model_range range);

/*
 * These return `otherwise`, which need not be within the range, where the file lacks the key, and
 * after a failure.
 */

uint32_t model_key_u32_or(const struct model_keys *keys, const char *suffix,
                          struct model_range range, uint32_t otherwise);
bool model_key_bool(const struct model_keys *keys, const char *suffix, bool otherwise);
/** A finite float. */
float model_key_f32(const struct model_keys *keys, const char *suffix, float otherwise);
/** A float that must not be negative; 0 stands for `otherwise`. */
float model_key_positive(const struct model_keys *keys, const char *suffix, float otherwise);

/** 1 / value, which the key has or stands for; it fails where that is not finite. */
float model_key_inverse(const struct model_keys *keys, const char *suffix, float value);

/** A text of the file's memory; data NULL: there is none. */
struct base_string model_key_string(const struct model_keys *keys, const char *suffix);

/*
 * A value for each of n_layers layers, from an array of so many, or from one value for all. Where
 * the file lacks the key, the caller's values stay.
 */

/** Whole numbers. Truth values count as 0 and 1. */
void model_key_per_layer(const struct model_keys *keys, const char *suffix,
                         struct model_range range, uint32_t *values, uint32_t n_layers);
/** Finite floats. */
void model_key_floats(const struct model_keys *keys, const char *suffix, float *values,
                      uint32_t n_layers);
void model_key_bools(const struct model_keys *keys, const char *suffix, bool *values,
                     uint32_t n_layers);

#endif
