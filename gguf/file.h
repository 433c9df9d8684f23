/**
 * A GGUF file (all parts of a split one) as a checked, read-only view.
 *
 * Everything that the directory says is checked when the file is opened; after that
 * nothing here can fail, and the pointers handed out stay valid until gguf_close().
 * Immutable after opening, so that threads may share it.
 */
#ifndef GGUF_FILE_H
#define GGUF_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/status.h"
#include "base/text/string.h"
#include "gguf/type.h"

struct gguf_file;

/**
 * Where the rows of a tensor lie that do not follow each other in a file: those of a folder's
 * tensors, which are named and ordered otherwise than GGUF's.
 */
struct gguf_view {
    const void *const *matrices; /* [ne[2] * ne[3]] of ne[1] rows; NULL: one after the other */
    uint64_t part_rows;  /* above 0: `matrices` are parts of one matrix, of so many rows each, the
                          * last of the rest; nothing else of a view is there then */
    const int32_t *rows; /* [ne[1]]: which row of its matrix as stored each is; NULL: its own */
    uint64_t row_step;   /* bytes from one stored row to the next; 0: row_bytes */
    uint64_t
        col_step; /* bytes from one element of a row to the next, of a type whose elements are
                   * bytes; 0: they touch. So columns are rows (a matrix that is transposed). */
};

/** One tensor of the directory. */
struct gguf_tensor {
    const char *name;                  /* NUL-terminated copy (names with a NUL byte are refused) */
    const struct gguf_type_info *type; /* one that can be decoded, unless gguf_list() was called */
    uint32_t type_id;                  /* as the file has it */
    uint32_t n_dims;                   /* 1..4 */
    uint64_t ne[4];     /* elements along each dimension, ne[0] fastest; 1 past n_dims */
    uint64_t n_rows;    /* ne[1] * ne[2] * ne[3] */
    uint64_t row_bytes; /* 0 where the type's size is not known */
    uint64_t n_bytes;   /* n_rows * row_bytes, and the tail_bytes of the type */
    const void *data;   /* in the read-only mapping; with a view, n_bytes do not begin here */
    const struct gguf_view *view; /* NULL: the rows lie at data, one after the other */
    /* [ne[2] * ne[3]]: those of each matrix that lie apart; NULL: none do, or all are 1 */
    const struct gguf_scales *scales;
    size_t shard;    /* which part of a split file holds it */
    uint64_t offset; /* of the data, from the start of its shard's file */
};

/**
 * Open a GGUF file (v2 or v3, all parts of a split one) and check its whole directory.
 * out: the file on success, NULL on failure; the caller owns it.   path: any part.
 * Tensor data stays in a read-only mapping until gguf_close(); nothing is copied.
 * Fails: STATUS_IO (open, map), STATUS_FORMAT (a count, length or offset that leaves the
 *        file, duplicate name, bad alignment, bytes that no tensor owns; the sentence has the
 *        byte offset),
 *        STATUS_UNSUPPORTED (version, tensor type, byte order).
 * Cost: O(directory). A tensor of a type that cannot be decoded is refused by name; I32, which
 * holds tables of whole numbers (GGUF_WHOLE_NUMBERS), is taken.
 */
enum status gguf_open(struct gguf_file **out, const char *path, struct status_why *why);

/**
 * As gguf_open, but tensors of any type are taken: to list what a file holds. What a tensor's
 * type is, gguf_type_listed() knows; nothing but listing may be done with the file.
 * Whether all of it can be decoded: gguf_check_types().
 */
enum status gguf_list(struct gguf_file **out, const char *path, struct status_why *why);

/** As gguf_list, of this one part alone, whatever its keys say of others. */
enum status gguf_list_part(struct gguf_file **out, const char *path, struct status_why *why);

/** Check that every tensor can be decoded.   Fails: STATUS_UNSUPPORTED, naming the first other one.
 */
enum status gguf_check_types(const struct gguf_file *file, struct status_why *why);

/** Check that nothing wrote to any part since it was opened. Fails: STATUS_CHANGED, STATUS_IO. */
enum status gguf_check_unchanged(const struct gguf_file *file, struct status_why *why);

/**
 * Copy all that is no tensor's data into memory, for every part. From then on a part's tensors are
 * all that depends on what becomes of its file, until gguf_let_go().
 * Fails: STATUS_CHANGED, STATUS_IO, STATUS_MEMORY.
 */
enum status gguf_keep_directories(struct gguf_file *file, struct status_why *why);

/**
 * After gguf_keep_directories: the data of this part's tensors are not touched any more, and its
 * file may change and vanish. What the directory says of them stays.
 */
void gguf_let_go(struct gguf_file *file, size_t shard);

/** Check that nothing wrote to this part. Fails: STATUS_CHANGED, STATUS_IO. */
enum status gguf_check_part_unchanged(const struct gguf_file *file, size_t shard,
                                      struct status_why *why);

/** Memory that is freed with the file, for who makes one; NULL: there is none. */
void *gguf_file_memory(struct gguf_file *file, size_t n_bytes);

/** Release everything; NULL is allowed. */
void gguf_close(struct gguf_file *file);

/** The path that was opened. */
const char *gguf_path(const struct gguf_file *file);
/** 2 or 3. */
uint32_t gguf_version(const struct gguf_file *file);

/** Tensors in the order of the directory (shards one after the other), as one array. */
size_t gguf_n_tensors(const struct gguf_file *file);
const struct gguf_tensor *gguf_tensor_at(const struct gguf_file *file, size_t i);
/** By name in O(1); NULL where there is none. */
const struct gguf_tensor *gguf_tensor_find(const struct gguf_file *file, const char *name);

/** Where matrix i of ne[2] * ne[3] begins; of a view that has other rows, the matrix as stored. */
const void *gguf_tensor_matrix(const struct gguf_tensor *tensor, uint64_t i);
/** Where row i of n_rows begins, of a type without bundles; of a view, with its step and gaps. */
const void *gguf_tensor_row(const struct gguf_tensor *tensor, uint64_t i);
/** The scales of row i that lie apart, as those of a matrix of this one row. */
struct gguf_scales gguf_tensor_scales(const struct gguf_tensor *tensor, uint64_t i);
/** Bytes of the scales of so many rows, 1 or more, beginning with row 0, and of their zero points;
 * 0 where all are 1. */
uint64_t gguf_scales_bytes(const struct gguf_scales *scales, uint64_t n_rows);
/** n_bytes, and those of its scales that lie apart. */
uint64_t gguf_tensor_stored_bytes(const struct gguf_tensor *tensor);
/**
 * The stretches of memory that the tensor's values lie in: one, or of a view one for each matrix.
 * Where rows or columns lie apart, what lies between them belongs to the stretch.
 */
uint64_t gguf_tensor_n_stretches(const struct gguf_tensor *tensor);
const void *gguf_tensor_stretch(const struct gguf_tensor *tensor, uint64_t i, size_t *n_bytes);
/** Whether a test is true of some stretch that the tensor's values or scales lie in. */
bool gguf_tensor_any(const struct gguf_tensor *tensor, bool (*test)(const void *data, size_t n));
/** Whether two tensors of one type and shape have the same bytes, those of their scales included.
 */
bool gguf_tensor_same(const struct gguf_tensor *a, const struct gguf_tensor *b);

/** Whether it is a folder with a checkpoint (gguf/assembly/): then its first shard is not one of
 * its files, but bytes in memory. */
bool gguf_is_folder(const struct gguf_file *file);

/**
 * Which file of a split model a path names, as NAME-00002-of-00005.gguf is the second; 0: of none.
 * n_prefix: receives how long the path is up to that ending; unchanged with 0.
 */
uint32_t gguf_part_number(const char *path, size_t *n_prefix);

/** Zeros after the last tensors that are more than padding, all parts together: harmless. */
uint64_t gguf_n_unused(const struct gguf_file *file);

/** Shards: 1 for a file that is not split. */
size_t gguf_n_shards(const struct gguf_file *file);
/** The mapped bytes of a shard, its path, and the offset at which its tensor data starts. */
const void *gguf_shard_data(const struct gguf_file *file, size_t shard, uint64_t *n_bytes,
                            uint64_t *data_offset);
const char *gguf_shard_path(const struct gguf_file *file, size_t shard);
/** What fstat said of it when it was mapped; all zero for bytes in memory. */
const struct stat *gguf_shard_opened(const struct gguf_file *file, size_t shard);

#endif
