#include "eval/reference/compact_source.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "eval/scorer/scorer.h"

enum {
    DECODED_BYTES = 16 << 20, /* of rows that are decoded at once */
    ROW_GROUP = 64            /* rows of a call are a multiple of this, which the kernels like */
};

static size_t max_rows(const struct eval_compact_file *file)
{
    if (file->layout.kind == EVAL_COMPACT_F32)
        return 0;
    size_t n = DECODED_BYTES / (file->layout.width * sizeof(float)) / ROW_GROUP;
    return (n ? n : 1) * ROW_GROUP;
}

/** Advise the kernel on the pages of rows [first, end) of the file. */
static void advise(const struct eval_compact_file *file, size_t first, size_t end, int advice)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t from = (uintptr_t)eval_compact_rows_at(file, first);
    uintptr_t to = (uintptr_t)eval_compact_rows_at(file, end);
    if (!file->map.data || first >= end)
        return; /* bytes in memory are the caller's */
    bool only_whole = advice == MADV_DONTNEED;
    from = (only_whole ? from + page - 1 : from) / page * page;
    to = only_whole ? to / page * page : to;
    if (to > from)
        madvise((void *)from, to - from, advice); /* a failure costs time, nothing else */
}

static size_t row_of_file(const struct eval_compact_reading *r, size_t row)
{
    return r->first_window * (size_t)r->file->layout.n_scored + row;
}

static void expect(void *user, size_t first, size_t n_rows)
{
    const struct eval_compact_reading *r = user;
    first = row_of_file(r, first);
    advise(r->file, first, first + n_rows, MADV_WILLNEED);
}

static enum status rows(void *user, size_t first, size_t n_rows, const void **out,
                        struct status_why *why)
{
    struct eval_compact_reading *r = user;
    struct eval_compact_file *file = r->file;
    size_t n_scored = (size_t)file->layout.n_scored;
    *out = NULL;
    first = row_of_file(r, first);
    advise(file, r->first_in, r->first_in + r->n_in, MADV_DONTNEED);
    r->first_in = first;
    r->n_in = n_rows;
    for (size_t w = first / n_scored; w * n_scored < first + n_rows; w++) {
        enum status status = eval_compact_check_window(file, w, why);
        if (status)
            return status;
    }
    const uint8_t *stored = eval_compact_rows_at(file, first);
    if (r->decoded)
        eval_compact_rows_decode(file->layout.kind, r->decoded, stored, n_rows,
                                 (size_t)file->layout.width);
    *out = r->decoded ? (const void *)r->decoded : stored;
    return STATUS_OK;
}

enum status eval_compact_source_open(struct eval_row_source *out,
                                     struct eval_compact_reading *reading,
                                     struct eval_compact_file *file, size_t first_window,
                                     struct status_why *why)
{
    *out = (struct eval_row_source){0};
    *reading = (struct eval_compact_reading){.file = file, .first_window = first_window};
    size_t decoded_bytes = max_rows(file) * (size_t)file->layout.width * sizeof(float);
    if (decoded_bytes) {
        reading->decoded = malloc(decoded_bytes);
        if (!reading->decoded)
            return status_fail(why, STATUS_MEMORY, "%s: no memory for %zu bytes of rows",
                               file->name, decoded_bytes);
    }
    /* Pages of the file: those of the rows handed out, and of a window that is checked. The head
       is there already, since it was compared with its checksum. */
    double pages = (double)EVAL_SLAB_ROWS * (double)file->places.row_bytes +
                   2 * (double)file->places.window_bytes;
    *out = (struct eval_row_source){
        .kind = EVAL_ROWS_HIDDEN,
        .n_vocab = (size_t)file->layout.n_vocab,
        .head = &file->head,
        .max_rows = max_rows(file),
        .n_bytes = (double)decoded_bytes + pages,
        .user = reading,
        .expect = expect,
        .rows = rows,
    };
    return STATUS_OK;
}

void eval_compact_source_close(struct eval_compact_reading *reading)
{
    free(reading->decoded);
    *reading = (struct eval_compact_reading){0};
}
