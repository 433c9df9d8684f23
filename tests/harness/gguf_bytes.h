/** GGUF files that lie in memory: a sanitizer or a guard page sees where they end. */
#ifndef TESTS_HARNESS_GGUF_BYTES_H
#define TESTS_HARNESS_GGUF_BYTES_H

#include "gguf/file.h"

/**
 * As gguf_open, over bytes in memory: `data` must outlive the result. One part of several is
 * refused.   name: used in sentences.
 */
enum status gguf_bytes_open(struct gguf_file **out, const void *data, size_t n_bytes,
                            const char *name, struct status_why *why);
/** As gguf_list. */
enum status gguf_bytes_list(struct gguf_file **out, const void *data, size_t n_bytes,
                            const char *name, struct status_why *why);

#endif
