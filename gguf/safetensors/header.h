/** The header of one safetensors file. */
#ifndef SAFETENSORS_HEADER_H
#define SAFETENSORS_HEADER_H

#include "base/status.h"
#include "base/text/strtab.h"
#include "gguf/safetensors/type.h"

enum {
    SAFETENSORS_MAX_HEADER = 100000000, /* bytes, as the reference library has it */
    SAFETENSORS_MAX_DIMS = 8
};

/** One tensor. */
struct safetensors_tensor {
    const char *name; /* NUL-terminated, the header's */
    enum safetensors_type type;
    uint32_t n_dims;                      /* 0: one number */
    uint64_t shape[SAFETENSORS_MAX_DIMS]; /* outermost first; 1 past n_dims */
    uint64_t n_elements, n_bytes;
    uint64_t offset;  /* of the data, from the start of the file */
    const void *data; /* in the bytes that were read */
    size_t file;      /* which of a folder's; 0 for one file */
};

/** Zero-initialised is a valid, empty object. */
struct safetensors_header {
    struct safetensors_tensor *tensors; /* [names.n], in the order of the header */
    struct base_strtab names;
    char **name_texts; /* [names.n] */
    size_t capacity;
    uint64_t data_offset; /* where the data begin */
};

/**
 * Read and check the header of a whole file's bytes, which must outlive the object.
 * Every byte of the data belongs to one tensor; the last one ends where the file does.
 * Sentences do not begin with a path.   out: released by the caller, also on failure.
 * Fails: STATUS_FORMAT (a length, an offset, a shape, a name that occurs twice, bytes of no tensor
 *        or of two), STATUS_UNSUPPORTED (a type, more than 8 dimensions), STATUS_MEMORY.
 */
enum status safetensors_header_read(struct safetensors_header *out, const uint8_t *bytes,
                                    uint64_t n_bytes, struct status_why *why);
void safetensors_header_free(struct safetensors_header *h);

#endif
