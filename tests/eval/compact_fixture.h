/** A small compact base in memory, and ways to break it; for tests of its reader. */
#ifndef TESTS_EVAL_COMPACT_FIXTURE_H
#define TESTS_EVAL_COMPACT_FIXTURE_H

#include "eval/reference/compact_file.h"

/** free(data). */
struct compact_bytes {
    uint8_t *data; /* aligned to 64 */
    size_t n_bytes;
};

/** 3 windows of 8 tokens, 16 logits, rows of 32 elements; a head of type Q8_0. */
struct compact_bytes compact_make(enum eval_compact_kind kind, const char *head_path);
/** The same with a bias of type F16, k / 4 for token k: version 3. */
struct compact_bytes compact_make_biased(enum eval_compact_kind kind, const char *head_path);
/**
 * The same tokens, head and bias as two files with three documents of 5, 0 and 21 tokens:
 * version 4. The windows have 4, 2, 2, 3 and 1 scored positions.
 */
struct compact_bytes compact_make_documents(enum eval_compact_kind kind);

/** Put the right SHA-256 at the end of a header that was changed. */
void compact_seal(uint8_t *header);
/** And of the parts before the rows, as far as they lie in the bytes. */
void compact_seal_parts(uint8_t *data, size_t n_bytes);

#endif
