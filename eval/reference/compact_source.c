#include "eval/reference/compact_source.h"

#include <stdlib.h>

#include "eval/scorer/scorer.h"

enum { DECODED_BYTES = 16 << 20 }; /* of rows that are decoded at once */

static size_t max_rows(const struct eval_compact_file *file)
{
    return file->layout.kind == EVAL_COMPACT_F32
               ? 0
               : eval_row_pages_fit(DECODED_BYTES, (size_t)file->layout.width * sizeof(float));
}

static enum status rows(void *user, size_t first, size_t n_rows, const void **out,
                        struct status_why *why)
{
    struct eval_compact_reading *r = user;
    size_t row = r->first_row + first;
    const void *stored = eval_row_pages_take(user, first, n_rows);
    *out = NULL;
    for (size_t w = eval_compact_window_of(r->file, row);
         w < r->file->layout.n_windows && eval_compact_first_row(r->file, w) < row + n_rows; w++) {
        enum status status = eval_compact_check_window(r->file, w, why);
        if (status)
            return status;
    }
    if (r->decoded)
        eval_compact_rows_decode(r->file->layout.kind, r->decoded, stored, n_rows,
                                 (size_t)r->file->layout.width);
    *out = r->decoded ? (const void *)r->decoded : stored;
    return STATUS_OK;
}

static enum status unchanged(void *user, struct status_why *why)
{
    const struct eval_compact_file *file = ((const struct eval_compact_reading *)user)->file;
    enum status status = gguf_map_check_unchanged(&file->map, file->name, why);
    return status || !file->head_file ? status : gguf_check_unchanged(file->head_file, why);
}

enum status eval_compact_source_open(struct eval_row_source *out,
                                     struct eval_compact_reading *reading,
                                     struct eval_compact_file *file, size_t first_window,
                                     struct status_why *why)
{
    *out = (struct eval_row_source){0};
    size_t first_row = (size_t)eval_compact_first_row(file, first_window);
    *reading = (struct eval_compact_reading){
        .pages = {.rows = (const char *)eval_compact_rows_at(file, first_row),
                  .row_bytes = (size_t)file->offsets.row_bytes,
                  .mapped = file->map.data != NULL},
        .file = file,
        .first_row = first_row,
    };
    size_t decoded_bytes = max_rows(file) * (size_t)file->layout.width * sizeof(float);
    if (decoded_bytes) {
        reading->decoded = malloc(decoded_bytes);
        if (!reading->decoded)
            return status_fail(why, STATUS_MEMORY, "%s: no memory for %zu bytes of rows",
                               file->name, decoded_bytes);
    }
    /* Pages of the file: those of the rows handed out, and of a window that is checked. The head
       is there already, since it was compared with its checksum. */
    double pages = (double)EVAL_SLAB_ROWS * (double)file->offsets.row_bytes +
                   2 * eval_compact_window_bytes(file);
    *out = (struct eval_row_source){
        .kind = EVAL_ROWS_HIDDEN,
        .n_vocab = (size_t)file->layout.n_vocab,
        .head = &file->head,
        .bias = file->bias.data ? &file->bias : NULL,
        .soft_cap = file->layout.soft_cap,
        .max_rows = max_rows(file),
        .n_bytes = (double)decoded_bytes + pages,
        .user = reading,
        .expect = eval_row_pages_expect,
        .rows = rows,
        .unchanged = unchanged,
    };
    return STATUS_OK;
}

void eval_compact_source_close(struct eval_compact_reading *reading)
{
    free(reading->decoded);
    *reading = (struct eval_compact_reading){0};
}
