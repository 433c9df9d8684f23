#include "eval/reference/writer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "eval/reference/compact_layout.h"
#include "eval/reference/logits_file.h"

enum { PIECE_BYTES = 1 << 20 }; /* read at once */

static size_t check_bytes(const struct eval_writer *w)
{
    return w->n_covered + BASE_SHA256_BYTES;
}

uint8_t *eval_writer_check(const struct eval_writer *w, size_t window)
{
    return w->checks + window * check_bytes(w);
}

/** The first row of a window, which may be n_windows. */
static uint64_t first_row(const struct eval_writer *w, size_t window)
{
    return w->first_rows ? w->first_rows[window] : (uint64_t)window * w->n_scored;
}

/** The window that a row is of. */
static size_t window_of(const struct eval_writer *w, uint64_t row)
{
    if (!w->first_rows)
        return (size_t)(row / w->n_scored);
    size_t low = 0, high = w->n_windows;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        *(w->first_rows[middle] <= row ? &low : &high) = middle;
    }
    return low;
}

static enum status no_memory(const struct eval_writer *w, struct status_why *why)
{
    return status_fail(why, STATUS_MEMORY, "%s: out of memory", base_part_path(w->part));
}

/** Compare what a part was begun with, which may be less than the whole head. */
static enum status check_kept(const struct eval_writer *w, const struct eval_writer_head *head,
                              struct status_why *why)
{
    size_t n =
        (size_t)(base_part_kept(w->part) < head->n_bytes ? base_part_kept(w->part) : head->n_bytes);
    char *kept = malloc(n + 1);
    if (!kept)
        return no_memory(w, why);
    enum status status = base_part_read(w->part, 0, kept, n, why);
    if (!status && memcmp(kept, head->bytes, n) != 0)
        status = status_fail(why, STATUS_FORMAT, "%s: was begun with %s; remove it to begin anew",
                             base_part_path(w->part), head->what);
    free(kept);
    return status;
}

enum status eval_writer_begin(struct eval_writer *w, const char *path,
                              const struct base_part_options *options,
                              const struct eval_writer_head *head, struct status_why *why)
{
    enum status status = base_part_open(&w->part, path, options, why);
    if (status)
        return status;
    w->checks = calloc(w->n_windows, check_bytes(w));
    if (!w->checks)
        return no_memory(w, why);
    status = check_kept(w, head, why);
    if (!status && base_part_kept(w->part) < head->n_bytes)
        status = base_part_write(w->part, 0, head->bytes, head->n_bytes, why);
    return status;
}

void eval_writer_abandon(struct eval_writer *w)
{
    eval_writer_close(w, w->part && base_part_kept(w->part));
}

/** All rows of a window are stored: note its check, and write it where the file has it. */
static enum status end_window(struct eval_writer *w, size_t window, struct status_why *why)
{
    uint8_t *check = eval_writer_check(w, window);
    base_digest_add(w->digest, check, w->n_covered);
    enum status status = base_digest_close_bytes(w->digest, check + w->n_covered, why);
    w->digest = NULL;
    if (status || !w->n_covered)
        return status;
    return base_part_write(w->part, w->checks_at + window * check_bytes(w), check, check_bytes(w),
                           why);
}

/** A window's first row is here: one that was begun before is not finished any more. */
static void begin_window(struct eval_writer *w, size_t window)
{
    if (!w->has_checks)
        return;
    base_digest_discard(w->digest);
    w->digest = base_digest_open();
    w->n_digested = 0;
    if (w->format->begin)
        w->format->begin(w, window);
}

/** Write rows of one window as they are stored. */
static enum status store(struct eval_writer *w, size_t first, size_t n_rows, const void *stored,
                         struct status_why *why)
{
    size_t n_bytes = n_rows * w->row_bytes, window = window_of(w, first);
    uint64_t begin = first_row(w, window);
    enum status status =
        base_part_write(w->part, w->rows_at + first * (uint64_t)w->row_bytes, stored, n_bytes, why);
    if (status || !w->has_checks)
        return status;
    assert(w->n_digested == first - begin);
    base_digest_add(w->digest, stored, n_bytes);
    w->n_digested += n_rows;
    bool ends = w->n_digested == first_row(w, window + 1) - begin;
    return ends ? end_window(w, window, why) : STATUS_OK;
}

static enum status write_rows(void *user, struct kern_backend *backend, size_t first, size_t n_rows,
                              const void *rows, struct status_why *why)
{
    (void)backend;
    struct eval_writer *w = user;
    const struct eval_writer_format *format = w->format;
    const char *from = rows;
    enum status status = STATUS_OK;
    for (size_t end = first + n_rows, n; first < end && !status; first += n) {
        size_t window = window_of(w, first);
        n = base_min(end - first, (size_t)first_row(w, window + 1) - first);
        if (first == first_row(w, window))
            begin_window(w, window);
        n = format->encode ? base_min(n, format->max_encoded) : n;
        status = format->check ? format->check(w, first, from, n, why) : STATUS_OK;
        if (status)
            return status;
        const void *stored = format->encode ? format->encode(w, window, from, n) : from;
        status = store(w, first, n, stored, why);
        from += n * w->given_bytes;
    }
    return status;
}

static enum status sync_rows(void *user, struct status_why *why)
{
    return base_part_sync(((struct eval_writer *)user)->part, why);
}

/** What the journal keeps of a window is its sum. */
static enum status save_sum(void *user, size_t window, double *state, struct status_why *why)
{
    (void)why;
    const struct eval_writer *w = user;
    memcpy(state, eval_writer_check(w, window) + w->n_covered, BASE_SHA256_BYTES);
    return STATUS_OK;
}

/** Read a window's check from the part, with the sum that its rows really have. */
static enum status read_check(const struct eval_writer *w, size_t window, uint8_t *check,
                              struct status_why *why)
{
    uint64_t begin = first_row(w, window), at = w->rows_at + begin * w->row_bytes;
    uint64_t left = (first_row(w, window + 1) - begin) * w->row_bytes;
    char *piece = malloc(PIECE_BYTES);
    if (!piece)
        return no_memory(w, why);
    struct base_digest *digest = base_digest_open();
    enum status status = STATUS_OK;
    for (size_t n; left && !status; left -= n, at += n) {
        n = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
        status = base_part_read(w->part, at, piece, n, why);
        if (!status)
            base_digest_add(digest, piece, n);
    }
    free(piece);
    if (!status)
        status = base_part_read(w->part, w->checks_at + window * check_bytes(w), check,
                                w->n_covered, why);
    if (!status)
        base_digest_add(digest, check, w->n_covered);
    enum status hashed = base_digest_close_bytes(digest, check + w->n_covered, why);
    return status ? status : hashed;
}

static enum status compare_sum(void *user, size_t window, const double *state, bool *same,
                               struct status_why *why)
{
    const struct eval_writer *w = user;
    uint8_t check[EVAL_WRITER_MOST_COVERED + BASE_SHA256_BYTES];
    *same = false;
    if (base_part_kept(w->part) < w->rows_at + first_row(w, window + 1) * w->row_bytes)
        return STATUS_OK;
    enum status status = read_check(w, window, check, why);
    *same = !status && memcmp(check + w->n_covered, state, BASE_SHA256_BYTES) == 0;
    if (*same)
        memcpy(eval_writer_check(w, window), check, check_bytes(w));
    return status;
}

struct eval_row_sink eval_writer_sink(struct eval_writer *w)
{
    struct eval_row_sink sink = {.kind = w->format->kind, .user = w, .write = write_rows};
    if (w->has_checks) {
        sink.n_state = BASE_SHA256_DOUBLES;
        sink.sync = sync_rows;
        sink.save = save_sum;
        sink.restore = compare_sum;
    }
    return sink;
}

bool eval_writer_is_whole(const struct eval_writer *w)
{
    return base_part_is_whole(w->part);
}

enum status eval_writer_commit(struct eval_writer *w, struct status_why *why)
{
    enum status status = base_part_commit(w->part, why);
    w->part = NULL;
    eval_writer_close(w, true);
    return status;
}

void eval_writer_close(struct eval_writer *w, bool keep)
{
    if (!w)
        return;
    base_part_close(w->part, keep);
    base_digest_discard(w->digest);
    if (w->format->release)
        w->format->release(w);
    free(w->checks);
    free(w->first_rows);
    free(w);
}
