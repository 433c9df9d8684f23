#include "eval/reference/logits_source.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "eval/llama_compat.h"

enum {
    SLAB_BYTES = 128 << 20,  /* records handed out at once */
    AHEAD_BYTES = 256 << 20, /* asked of the disk before they are used */
    ROW_GROUP = 64 /* rows of a call are a multiple: no panel of the kernels is half full */
};

/**
 * ln sum p of a record, which should be 0: rounding to codes and to float32 stays well within the
 * tolerance; tokens raised to the floor add V e^-reach to the sum at most.
 */
static const double log_sum_tolerance = 1e-3;

static size_t rows_in(const struct eval_logits_file *file, size_t n_bytes)
{
    size_t n = n_bytes / eval_logits_record_bytes(&file->shape) / ROW_GROUP;
    return (n ? n : 1) * ROW_GROUP;
}

static const char *row_at(const struct eval_logits_reading *r, size_t row)
{
    return (const char *)r->file->records +
           (r->first_row + row) * eval_logits_record_bytes(&r->file->shape);
}

/** Let go of the pages that only rows [first, end) lie in; what is not mapped stays. */
static void let_go(const struct eval_logits_reading *r, size_t first, size_t end)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t from = ((uintptr_t)row_at(r, first) + page - 1) / page * page;
    uintptr_t to = (uintptr_t)row_at(r, end) / page * page;
    if (r->file->map.data && to > from)
        madvise((void *)from, to - from, MADV_DONTNEED); /* a failure costs memory, no more */
}

/** Ask for what is wanted soon: as far as AHEAD_BYTES go beyond `row`, or two calls' rows. */
static void read_ahead(struct eval_logits_reading *r, size_t row)
{
    size_t reach = rows_in(r->file, AHEAD_BYTES);
    reach = reach < 2 * r->n_in ? 2 * r->n_in : reach;
    size_t until = r->end - row < reach ? r->end : row + reach;
    size_t from = r->ahead > row ? r->ahead : row;
    if (until <= from)
        return;
    if (r->file->map.data)
        gguf_map_read_ahead(row_at(r, from), (size_t)(row_at(r, until) - row_at(r, from)));
    r->ahead = until;
}

static void expect(void *user, size_t first, size_t n_rows)
{
    struct eval_logits_reading *r = user;
    bool goes_on = first == r->end;
    r->end = first + n_rows;
    if (!goes_on)
        r->ahead = first;
    read_ahead(r, first);
}

static enum status rows(void *user, size_t first, size_t n_rows, const void **out,
                        struct status_why *why)
{
    (void)why;
    struct eval_logits_reading *r = user;
    let_go(r, r->first_in, r->first_in + r->n_in);
    r->first_in = first;
    r->n_in = n_rows;
    if (first < r->end)
        read_ahead(r, first);
    *out = row_at(r, first);
    return STATUS_OK;
}

static enum status check_row(const struct eval_logits_reading *r, size_t row,
                             const struct kern_row_score *score, struct status_why *why)
{
    const struct eval_logits_shape *shape = &r->file->shape;
    size_t n_scored = eval_logits_n_scored(shape), in_file = r->first_row + row;
    size_t chunk = in_file / n_scored;
    size_t position = eval_logits_first_scored(shape) + in_file % n_scored;
    float scale, floor;
    memcpy(&scale, row_at(r, row), sizeof scale);
    memcpy(&floor, row_at(r, row) + sizeof scale, sizeof floor);
    if (!isfinite(scale) || !isfinite(floor) || scale < 0)
        return status_fail(why, STATUS_FORMAT,
                           "%s: chunk %zu, position %zu (from 0): the record has the scale %g and "
                           "the floor %g, which no finite logits give",
                           r->file->name, chunk, position, (double)scale, (double)floor);
    double log_sum = score->max_logit + score->log_sum;
    double most =
        log1p((double)shape->n_vocab * exp(-EVAL_COMPAT_LOGITS_REACH)) + log_sum_tolerance;
    if (log_sum >= -log_sum_tolerance && log_sum <= most)
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
    for (size_t i = 0; i < n_rows && status == STATUS_OK; i++)
        status = check_row(r, first + i, &scores[i], why);
    return status;
}

struct eval_row_source eval_logits_source(struct eval_logits_reading *reading,
                                          const struct eval_logits_file *file, size_t first_chunk,
                                          double cut)
{
    *reading = (struct eval_logits_reading){
        .file = file, .first_row = first_chunk * eval_logits_n_scored(&file->shape)};
    return (struct eval_row_source){
        .kind = EVAL_ROWS_CODES,
        .n_vocab = file->shape.n_vocab,
        .cut = cut,
        .max_rows = rows_in(file, SLAB_BYTES),
        .user = reading,
        .expect = expect,
        .rows = rows,
        .check = check,
    };
}
