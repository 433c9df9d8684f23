/** NumPy's files: the header of an .npy of float32, and many of them in one .npz. */
#ifndef BASE_FILE_NPY_H
#define BASE_FILE_NPY_H

#include <stdint.h>

#include "base/file/atomic_file.h"

enum { BASE_NPY_HEADER_BYTES = 256 };

/**
 * The header of an array of little-endian float32 in C order; values follow it.
 * shape: the slowest axis first, at most 4.   Returns its bytes, a multiple of 64.
 */
size_t base_npy_header(char out[BASE_NPY_HEADER_BYTES], const uint64_t *shape, size_t n_dims);

/** A zip without compression, as numpy.savez writes. */
struct base_npz;

/** Begin in `file`, which stays the caller's. NULL: no memory. */
struct base_npz *base_npz_begin(struct base_file *file);
/**
 * Add an array of float32; name without ".npy". Failures of the file stick there.
 * Fails: STATUS_MEMORY.
 */
enum status base_npz_add(struct base_npz *npz, const char *name, const uint64_t *shape,
                         size_t n_dims, const float *values, struct status_why *why);
/** Write the directory and free the object; NULL is allowed. Fails: STATUS_UNSUPPORTED (more than
 * 65535 arrays). */
enum status base_npz_end(struct base_npz *npz, struct status_why *why);

#endif
