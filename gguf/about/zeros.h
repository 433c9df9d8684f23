/** Long stretches of zero bytes: a download may have set room aside, and not filled it. */
#ifndef GGUF_ABOUT_ZEROS_H
#define GGUF_ABOUT_ZEROS_H

#include "gguf/file.h"

/** Bytes that are zero, one after the other, in the data of a shard. */
struct gguf_zeros {
    size_t shard;
    uint64_t offset, n_bytes;               /* in the shard's file */
    const struct gguf_tensor *first, *last; /* that have some of them */
    size_t n_whole;                         /* matrices that have nothing else */
    unsigned n_signs; /* that it is a gap in the file, and no numbers that are 0 */
};

/**
 * The signs are: it begins in the middle of a row; it ends in one, or with the data; it goes from a
 * part of a matrix into another one, or over several. Numbers that are 0 may show one of them: rows
 * at the end of the last tensor that no token has, a matrix that a merge has put to 0.
 */
enum { GGUF_SURE_SIGNS = 2, GGUF_LEAST_ZEROS = 4096 };

typedef enum status gguf_zeros_found(void *user, const struct gguf_zeros *zeros,
                                     struct status_why *why);

/**
 * Look for stretches of GGUF_LEAST_ZEROS bytes and more, and for whole matrices: at a few bytes in
 * the middle of each stored matrix, at every thousandth of the data, and at the end of each shard;
 * only where these are zero are their neighbours read. A gap between two of these places is not
 * seen. Fails: STATUS_MEMORY; as `found`, which ends it.
 */
enum status gguf_zeros_find(const struct gguf_file *file, gguf_zeros_found *found, void *user,
                            struct status_why *why);

#endif
