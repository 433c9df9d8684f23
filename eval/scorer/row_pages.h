/** Rows of a mapped file on their way through memory: asked for ahead of use, let go after it. */
#ifndef EVAL_SCORER_ROW_PAGES_H
#define EVAL_SCORER_ROW_PAGES_H

#include <stdbool.h>
#include <stddef.h>

/** Fill in the first three; the rest is zero. */
struct eval_row_pages {
    const char *rows; /* what the plan counts as row 0 */
    size_t row_bytes;
    bool mapped;           /* else the bytes are somebody else's, and stay as they are */
    size_t end;            /* rows up to here are wanted soon */
    size_t ahead;          /* rows up to here have been asked of the disk */
    size_t first_in, n_in; /* handed out last */
};

/** Rows that n_bytes hold, as a multiple of what the kernels like; at least one such group. */
size_t eval_row_pages_fit(size_t n_bytes, size_t row_bytes);

/** As `expect` of struct eval_row_source, for which pages is the first member of `user`. */
void eval_row_pages_expect(void *pages, size_t first, size_t n_rows);

/** The first of n_rows rows. Those that were handed out before are let go. */
const char *eval_row_pages_take(void *pages, size_t first, size_t n_rows);

#endif
