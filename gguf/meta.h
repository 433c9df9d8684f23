/**
 * Typed look-up in the key/value section of a GGUF file.
 *
 * Two families: gguf_kv_* for code that walks over all pairs, and gguf_get_* for code that wants
 * one key as one type, and a good sentence otherwise.
 */
#ifndef GGUF_META_H
#define GGUF_META_H

#include "gguf/file.h"

/** Value types as stored in files. */
enum gguf_value_type {
    GGUF_VALUE_U8 = 0,
    GGUF_VALUE_I8 = 1,
    GGUF_VALUE_U16 = 2,
    GGUF_VALUE_I16 = 3,
    GGUF_VALUE_U32 = 4,
    GGUF_VALUE_I32 = 5,
    GGUF_VALUE_F32 = 6,
    GGUF_VALUE_BOOL = 7,
    GGUF_VALUE_STRING = 8,
    GGUF_VALUE_ARRAY = 9,
    GGUF_VALUE_U64 = 10,
    GGUF_VALUE_I64 = 11,
    GGUF_VALUE_F64 = 12
};

/** One key/value pair. */
struct gguf_kv {
    struct base_string key;
    enum gguf_value_type type;
    enum gguf_value_type element_type; /* of an array; = type otherwise */
    uint64_t count;                    /* elements of an array; 1 otherwise */
    const uint8_t *data; /* first byte of the value in the mapping (arrays: first element) */
};

/** Name of a value type, for sentences and info ("u32", "string", "array"). */
const char *gguf_value_type_name(enum gguf_value_type type);

/** Pairs of the first shard, in file order. */
size_t gguf_n_kv(const struct gguf_file *file);
const struct gguf_kv *gguf_kv_at(const struct gguf_file *file, size_t i);
/** NULL where there is no such key. */
const struct gguf_kv *gguf_kv_find(const struct gguf_file *file, const char *key);

/**
 * Put `pair` in place of the file's pair of that key; where there is none, add it. Every later
 * look-up and walk sees it. The bytes of the mapping do not change.
 * pair: a value (not an array) as stored in a file; key and bytes are copied.
 * Only while no other thread uses the file.   Fails: STATUS_MEMORY.
 */
enum status gguf_override(struct gguf_file *file, const struct gguf_kv *pair,
                          struct status_why *why);

/**
 * Typed look-up. `*found` (may be NULL: then the key is required) tells whether the key
 * exists; where it does not, the output is left untouched, so a default can be put there first.
 * Any integer type serves an integer, if the value fits; any float type a float.
 * Fails: STATUS_FORMAT, naming file, key, the type found and the type expected.
 */
enum status gguf_get_u32(const struct gguf_file *file, const char *key, uint32_t *value,
                         bool *found, struct status_why *why);
enum status gguf_get_f32(const struct gguf_file *file, const char *key, float *value, bool *found,
                         struct status_why *why);
enum status gguf_get_bool(const struct gguf_file *file, const char *key, bool *value, bool *found,
                          struct status_why *why);
enum status gguf_get_string(const struct gguf_file *file, const char *key,
                            struct base_string *value, bool *found, struct status_why *why);

/**
 * An array of u32/i32/... as int64, element i; a scalar counts as an array of one.
 * The caller has checked i < kv->count and that element_type is an integer or bool.
 */
int64_t gguf_kv_int(const struct gguf_kv *kv, uint64_t i);
/** An integer as it is, where its type has no sign. */
uint64_t gguf_kv_uint(const struct gguf_kv *kv, uint64_t i);
/** Element i of a float array (f32 or f64) or scalar. */
double gguf_kv_float(const struct gguf_kv *kv, uint64_t i);
/** The bytes of a value, from data on. Cost: of strings, steps over all. */
size_t gguf_kv_bytes(const struct gguf_kv *kv);
bool gguf_value_is_int(enum gguf_value_type type);
bool gguf_value_is_float(enum gguf_value_type type);

/** String i of a string array, or of a scalar (i is 0). Cost: steps over those before it. */
struct base_string gguf_kv_string(const struct gguf_kv *kv, uint64_t i);

/**
 * All strings of a string array, in one pass.
 * out: array of kv->count strings (bytes in the mapping); the caller frees it with free().
 */
enum status gguf_kv_strings(const struct gguf_kv *kv, struct base_string **out,
                            struct status_why *why);

#endif
