#include "eval/reference/logits_source.h"

#include <math.h>
#include <string.h>

enum { SLAB_BYTES = 128 << 20 }; /* records handed out at once */

static enum status rows(void *user, size_t first, size_t n_rows, const void **out,
                        struct status_why *why)
{
    (void)why;
    *out = eval_row_pages_take(user, first, n_rows);
    return STATUS_OK;
}

static enum status check_row(const struct eval_logits_reading *r, size_t row,
                             const struct kern_row_score *score, struct status_why *why)
{
    const struct eval_logits_shape *shape = &r->file->shape;
    size_t n_scored = eval_logits_n_scored(shape), in_file = r->first_row + row;
    size_t chunk = in_file / n_scored;
    size_t position = eval_logits_first_scored(shape) + in_file % n_scored;
    const char *record = r->pages.rows + row * r->pages.row_bytes;
    float scale, floor;
    memcpy(&scale, record, sizeof scale);
    memcpy(&floor, record + sizeof scale, sizeof floor);
    if (!isfinite(scale) || !isfinite(floor) || scale < 0)
        return status_fail(why, STATUS_FORMAT,
                           "%s: chunk %zu, position %zu (from 0): the record has the scale %g and "
                           "the floor %g, which no finite logits give",
                           r->file->name, chunk, position, (double)scale, (double)floor);
    double log_sum = score->max_logit + score->log_sum;
    if (eval_logits_adds_up(log_sum, shape->n_vocab))
        return STATUS_OK;
    return status_fail(why, STATUS_FORMAT,
                       "%s: chunk %zu, position %zu (from 0): the probabilities of the record add "
                       "up to %g; expected 1: no model wrote this record",
                       r->file->name, chunk, position, exp(log_sum));
}

static enum status check(void *user, size_t first, size_t n_rows,
                         const struct kern_row_score *scores, struct status_why *why)
{
    const struct eval_logits_reading *r = user;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < n_rows && !status; i++)
        status = check_row(r, first + i, &scores[i], why);
    return status;
}

static enum status unchanged(void *user, struct status_why *why)
{
    const struct eval_logits_file *file = ((const struct eval_logits_reading *)user)->file;
    return gguf_map_check_unchanged(&file->map, file->name, why);
}

struct eval_row_source eval_logits_source(struct eval_logits_reading *reading,
                                          const struct eval_logits_file *file, size_t first_chunk,
                                          double cut)
{
    size_t first_row = first_chunk * eval_logits_n_scored(&file->shape);
    size_t row_bytes = eval_logits_record_bytes(&file->shape);
    *reading = (struct eval_logits_reading){
        .pages = {.rows = (const char *)file->records + first_row * row_bytes,
                  .row_bytes = row_bytes,
                  .mapped = file->map.data != NULL},
        .file = file,
        .first_row = first_row,
    };
    return (struct eval_row_source){
        .kind = EVAL_ROWS_CODES,
        .n_vocab = file->shape.n_vocab,
        .cut = cut,
        .max_rows = eval_row_pages_fit(SLAB_BYTES, row_bytes),
        .user = reading,
        .expect = eval_row_pages_expect,
        .rows = rows,
        .check = check,
        .unchanged = unchanged,
    };
}
