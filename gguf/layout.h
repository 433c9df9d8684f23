/**
 * The layout of a GGUF file (v3) that is to be written: its directory, and where each tensor's
 * bytes go. Who writes the file puts the directory at its beginning, and the tensors' bytes where
 * the layout says; what is left between them is zeros.
 *
 * Errors stick: the first failure is reported by gguf_layout_finish(). Keys and names should
 * differ; a file where they do not can be laid out (tests want it) but will not be opened.
 */
#ifndef GGUF_LAYOUT_H
#define GGUF_LAYOUT_H

#include "gguf/meta.h"

struct gguf_layout;

/** Start an empty file. out: released with gguf_layout_free(). Fails: STATUS_MEMORY. */
enum status gguf_layout_new(struct gguf_layout **out, struct status_why *why);
/** NULL is allowed. */
void gguf_layout_free(struct gguf_layout *l);

/**
 * Pairs, in the order of the calls; their bytes are copied. The key general.alignment (u32) is
 * obeyed.   pair: as one of an open file; of strings, count and bytes are those of a file.
 */
void gguf_layout_pair(struct gguf_layout *l, const struct gguf_kv *pair);
void gguf_layout_u32(struct gguf_layout *l, const char *key, uint32_t value);
void gguf_layout_string(struct gguf_layout *l, const char *key, const char *value);
void gguf_layout_strings(struct gguf_layout *l, const char *key, const struct base_string *values,
                         size_t count);

/** Add a tensor; name and ne are copied. Fails (at finish): STATUS_FORMAT for a shape that a
 *  reader would refuse, STATUS_UNSUPPORTED for a type whose size is not known. */
void gguf_layout_tensor(struct gguf_layout *l, const char *name, uint32_t type_id,
                        const uint64_t *ne, uint32_t n_dims);

/** The beginning of the file, and its size. */
struct gguf_directory {
    const void *bytes;      /* [n_bytes], the layout's; with the padding before the first tensor */
    uint64_t n_bytes;       /* the first tensor is here */
    uint64_t n_bytes_whole; /* of the file */
};

/**
 * No pair and no tensor may be added after this.
 * Fails: the first error of the calls before; STATUS_FORMAT (alignment), STATUS_MEMORY.
 */
enum status gguf_layout_finish(struct gguf_layout *l, struct gguf_directory *out,
                               struct status_why *why);

/** The tensors as they were added; `offset` is from the beginning of the file, `data` is NULL. */
size_t gguf_layout_n_tensors(const struct gguf_layout *l);
const struct gguf_tensor *gguf_layout_tensor_at(const struct gguf_layout *l, size_t i);

#endif
