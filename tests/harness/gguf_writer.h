/**
 * A small GGUF v3 writer over gguf/layout.h: tests and benchmarks make their models with it.
 * Collect pairs and tensors, then write once, atomically (base/file/atomic_file.h).
 * Errors stick: the first failure is reported by gguf_writer_finish(). Keys and names should
 * differ; a file where they do not can be written (tests want it) but will not be opened.
 */
#ifndef TESTS_HARNESS_GGUF_WRITER_H
#define TESTS_HARNESS_GGUF_WRITER_H

#include "gguf/layout.h"

struct gguf_writer;

/** Start an empty file. out: owned by the caller until finish or abandon. */
enum status gguf_writer_new(struct gguf_writer **out, struct status_why *why);

/** Pairs, in the order of the calls. The key general.alignment (u32) is obeyed. */
void gguf_writer_u32(struct gguf_writer *w, const char *key, uint32_t value);
void gguf_writer_u16(struct gguf_writer *w, const char *key, uint16_t value);
void gguf_writer_i32(struct gguf_writer *w, const char *key, int32_t value);
void gguf_writer_f32(struct gguf_writer *w, const char *key, float value);
void gguf_writer_bool(struct gguf_writer *w, const char *key, bool value);
void gguf_writer_string(struct gguf_writer *w, const char *key, const char *value);
void gguf_writer_strings(struct gguf_writer *w, const char *key, const struct base_string *values,
                         size_t count);
void gguf_writer_f32s(struct gguf_writer *w, const char *key, const float *values, size_t count);
void gguf_writer_i32s(struct gguf_writer *w, const char *key, const int32_t *values, size_t count);
/** Copy a pair of another file as it stands. */
void gguf_writer_copy(struct gguf_writer *w, const struct gguf_kv *kv);

/**
 * Fill one tensor's bytes: called once per tensor, in order, while the file is written.
 * bytes: n_bytes to be filled, in slabs of whole rows: rows [row, row + n_rows).
 */
typedef void gguf_fill_fn(void *user, size_t row, size_t n_rows, void *bytes);

/**
 * Add a tensor; name and ne are copied at once, data when the file is written: it must live
 * until then. The bytes are those of a file: rows of packed blocks, as gguf/type.h counts them.
 * Fails (at finish): STATUS_FORMAT for a shape that a reader would refuse.
 */
void gguf_writer_tensor(struct gguf_writer *w, const char *name, enum gguf_type type,
                        const uint64_t *ne, uint32_t n_dims, const void *data);
/** Add a tensor whose bytes are made on the fly (models larger than memory). */
void gguf_writer_tensor_fill(struct gguf_writer *w, const char *name, enum gguf_type type,
                             const uint64_t *ne, uint32_t n_dims, gguf_fill_fn *fill, void *user);

/**
 * Write to `path` and free the writer, whatever the outcome.
 * Fails: the first error of the calls before; STATUS_IO (naming path and reason).
 */
enum status gguf_writer_finish(struct gguf_writer *w, const char *path, struct status_why *why);
/** Write to memory (*data is malloc'ed) and free the writer. */
enum status gguf_writer_finish_memory(struct gguf_writer *w, void **data, size_t *n_bytes,
                                      struct status_why *why);
/** Free without writing; NULL is allowed. */
void gguf_writer_abandon(struct gguf_writer *w);

#endif
