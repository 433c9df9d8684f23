/**
 * What the files that implement gguf/file.h and gguf/meta.h share. Nobody else includes it, but for
 * the tests' way of opening bytes in memory (tests/harness/gguf_bytes.c).
 *
 * Opening goes: open.c makes an object (file.c), one for all parts of a split model; directory.c maps
 * and reads each part (header, then pairs.c for the key/value section, then tensors.c for the tensor
 * section).
 */
#ifndef GGUF_FILE_IMPL_H
#define GGUF_FILE_IMPL_H

#include "base/text/strtab.h"
#include "gguf/cursor.h"
#include "gguf/map.h"
#include "gguf/meta.h"

enum { GGUF_MAX_DIMS = 4, GGUF_DEFAULT_ALIGNMENT = 32 };

/** One part: a GGUF file of its own. Zero-initialised is a valid, empty object. */
struct gguf_shard {
    char *path;          /* owned */
    struct gguf_map map; /* empty for bytes in memory */
    const uint8_t *data;
    uint64_t n_bytes;
    uint32_t version;
    struct gguf_kv *kv; /* [kv_names.n] */
    size_t kv_capacity;
    struct base_strtab kv_names;
    uint64_t alignment;
    uint64_t data_offset; /* where tensor data starts; without tensors, where the directory ends */
    uint64_t n_unused;    /* zeros after the last tensor and its padding */
};

/** Pieces of memory that are freed together. */
struct gguf_arena {
    void **pieces;
    size_t n, capacity;
};

/** Memory of an overriding pair, in a list. */
struct gguf_override {
    struct gguf_override *next;
    uint8_t bytes[]; /* key, value */
};

struct gguf_file {
    char *path; /* as given */
    struct gguf_shard *shards;
    size_t n_shards;
    struct gguf_tensor *tensors; /* [tensor_names.n] */
    size_t tensor_capacity;
    struct base_strtab tensor_names;
    char *name_bytes; /* the NUL-terminated copies of the names */
    struct gguf_override *overrides;
    void *directory;          /* of a folder: the bytes of its first shard, owned */
    struct gguf_arena arena;  /* what scales, and a folder's views and kept texts are made of */
    struct gguf_file *tokens; /* of a folder: whose tokens it has; owned; may be NULL */
};

/** Start an object of n_shards empty shards. */
enum status gguf_file_new(struct gguf_file **out, const char *path, size_t n_shards,
                          struct status_why *why);

/** Map one part of a file and read it.   path: copied. */
enum status gguf_file_map_shard(struct gguf_file *file, size_t shard, const char *path,
                                struct status_why *why);

/** Give every tensor of all shards its NUL-terminated name: the last step of opening. */
enum status gguf_file_copy_names(struct gguf_file *file, struct status_why *why);

/** Number of parts that a shard belongs to, as its keys say: 1 if it is not split. */
enum status gguf_split_count(const struct gguf_shard *shard, uint32_t *count,
                             struct status_why *why);

/**
 * Read and check one shard whose bytes are in place: header, pairs, and tensors, which are
 * appended to the file's.
 */
enum status gguf_directory_read(struct gguf_file *file, size_t shard, struct status_why *why);

/** The key/value section: n_pairs pairs from the cursor on, into shard->kv. */
enum status gguf_pairs_read(struct gguf_shard *shard, struct gguf_cursor *cursor, uint64_t n_pairs,
                            struct status_why *why);

/** Add one pair, whose key and bytes must outlive the shard.   Fails: also on a known key. */
enum status gguf_pairs_append(struct gguf_shard *shard, const struct gguf_kv *kv,
                              struct status_why *why);

/** The tensor section: n_tensors entries from the cursor on; where data lies is not checked. */
enum status gguf_tensors_read(struct gguf_file *file, size_t shard, struct gguf_cursor *cursor,
                              uint64_t n_tensors, struct status_why *why);

/** Add one tensor, the bytes of whose name must outlive the file.   Fails: also on a known name. */
enum status gguf_tensors_append(struct gguf_file *file, struct base_string name,
                                const struct gguf_tensor *tensor, struct status_why *why);

/**
 * Check where the data of tensors [first, all) of a shard lie, and point them at it. Every byte
 * of the data section belongs to a tensor, or to padding of fewer bytes than the alignment; only
 * zeros may follow the last one.
 */
enum status gguf_tensors_place(struct gguf_file *file, size_t shard, size_t first,
                               struct status_why *why);

/**
 * From n_dims and ne to type, n_rows, row_bytes and n_bytes, all of them checked.
 * ne past n_dims must be 1. The type may be any; sizes that are not known are 0.
 * Fails: STATUS_FORMAT (shape).
 */
enum status gguf_tensor_measure(struct gguf_tensor *tensor, uint32_t type_id,
                                struct status_why *why);

/** Bytes of a value of fixed size; 0 for strings, arrays and unknown types. */
size_t gguf_value_size(uint32_t type);

/** The pair of a key in one shard, or NULL. */
const struct gguf_kv *gguf_shard_find(const struct gguf_shard *shard, const char *key);

/**
 * As gguf_get_u32, in one shard; the sentence does not begin with the path.
 * A pair must be there: *kv is what gguf_shard_find returned.
 */
enum status gguf_kv_u32(const struct gguf_kv *kv, uint32_t *value, struct status_why *why);

#endif
