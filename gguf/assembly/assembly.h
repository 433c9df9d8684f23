/**
 * A published folder presented as a GGUF file: keys and small tensors that were made of it, in
 * memory, and views of the tensors in its files. For who reads such folders (model/folder/).
 *
 * The first shard are the bytes of a whole GGUF file in memory; each file of the folder is a
 * further one, of which the directory is not read. What the caller appends is not checked again.
 */
#ifndef GGUF_ASSEMBLY_H
#define GGUF_ASSEMBLY_H

#include "gguf/map.h"
#include "gguf/meta.h"

/** A mapped file of the folder. */
struct gguf_assembled {
    const char *path;     /* copied */
    struct gguf_map *map; /* taken, on success, and emptied */
    uint64_t data_offset; /* where its header ends */
};

/**
 * Begin a file for a folder, of so many files besides the directory.
 * directory: a whole GGUF file's n_bytes, aligned as malloc does; owned by *out, also on failure.
 * Fails: as gguf_open; STATUS_MEMORY.
 */
enum status gguf_assemble(struct gguf_file **out, const char *path, void *directory,
                          uint64_t n_bytes, size_t n_files, struct status_why *why);

/** Take file i, from 0.   Fails: STATUS_MEMORY. */
enum status gguf_assemble_file(struct gguf_file *file, size_t i, const struct gguf_assembled *part,
                               struct status_why *why);

/**
 * Append a tensor: name (copied), n_dims, ne, data, view, scales, offset and shard (i + 1) of file
 * i. Types of folders are taken, too; scales only of a type with scale_elems.
 * Fails: STATUS_FORMAT (shape; a name that is there already), STATUS_MEMORY.
 */
enum status gguf_assemble_tensor(struct gguf_file *file, const struct gguf_tensor *tensor,
                                 uint32_t type_id, struct status_why *why);

/** Append all pairs of `from` whose keys begin so; from is owned by the file from now on, also on
 * failure. Once. */
enum status gguf_assemble_pairs(struct gguf_file *file, struct gguf_file *from, const char *prefix,
                                struct status_why *why);

/** The last step: afterwards it is as one that was opened. */
enum status gguf_assemble_finish(struct gguf_file *file, struct status_why *why);

#endif
