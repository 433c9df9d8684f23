#include "eval/reference/logits_writer.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/content/written.h"
#include "eval/llama_compat.h"

struct logits_writer {
    struct eval_writer writer;
    struct eval_logits_shape shape;
};

/**
 * Magic, counts and tokens, as the file begins; freed by the caller. NULL: no memory.
 * Whether a base used BOS is read off the first token. Where windows were left out before it, the
 * text has no BOS there; putting it there changes nothing, since every window's first token gives
 * way to it.
 */
static char *make_head(const struct eval_logits_shape *shape, const struct eval_plan *plan,
                       const struct eval_stream *stream)
{
    char *head = malloc((size_t)eval_logits_head_bytes(shape));
    if (!head)
        return NULL;
    int32_t counts[EVAL_LOGITS_COUNTS] = {(int32_t)shape->n_ctx, (int32_t)shape->n_vocab,
                                          (int32_t)shape->n_chunks};
    memcpy(head, eval_logits_magic, sizeof eval_logits_magic);
    memcpy(head + sizeof eval_logits_magic, counts, sizeof counts);
    char *ids = head + sizeof eval_logits_magic + sizeof counts;
    memcpy(ids, stream->ids + eval_plan_first(plan, 0),
           shape->n_chunks * shape->n_ctx * sizeof(int32_t));
    if (plan->bos_use == EVAL_BOS_REPLACES)
        memcpy(ids, &plan->options.bos, sizeof plan->options.bos);
    return head;
}

/*
 * From 2.7e8 on neighbouring float32 logits are 32 apart or more: the largest one less the reach is
 * the largest one again, and all codes are 0. (A row that is not finite shows in the figures.)
 */
static enum status check_records(const struct eval_writer *w, size_t first, const void *rows,
                                 size_t n_rows, struct status_why *why)
{
    const struct eval_logits_shape *shape = &((const struct logits_writer *)w)->shape;
    double all = log((double)shape->n_vocab);
    for (size_t i = 0; i < n_rows; i++) {
        float scale, floor;
        memcpy(&scale, (const char *)rows + i * w->row_bytes, sizeof scale);
        memcpy(&floor, (const char *)rows + i * w->row_bytes + sizeof scale, sizeof floor);
        if (scale != 0 || !isfinite(floor) ||
            eval_logits_adds_up(all + (double)floor, shape->n_vocab))
            continue;
        return status_fail(why, STATUS_NONFINITE,
                           "%s: chunk %zu, position %zu (from 0): the logits are too large for a "
                           "base-logits file: float32 cannot tell the largest from what is %g "
                           "below it; assay record --format compact keeps such a model",
                           base_part_path(w->part), (first + i) / w->n_scored,
                           eval_logits_first_scored(shape) + (first + i) % w->n_scored,
                           (double)EVAL_COMPAT_LOGITS_REACH);
    }
    return STATUS_OK;
}

enum status eval_logits_writer_open(struct eval_writer **out,
                                    const struct eval_logits_recording *recording,
                                    struct status_why *why)
{
    static const struct eval_writer_format format = {.kind = EVAL_ROWS_CODES,
                                                     .check = check_records};
    const struct eval_plan *plan = recording->plan;
    *out = NULL;
    assert(plan->options.protocol == EVAL_PROTOCOL_DEFAULT);
    if (plan->window > INT32_MAX || recording->n_vocab > INT32_MAX || plan->n_windows > INT32_MAX)
        return status_fail(why, STATUS_USAGE,
                           "%s: %zu windows of %zu tokens; the format's counts have 31 bits",
                           recording->path, plan->n_windows, plan->window);
    struct eval_logits_shape shape = {
        .n_ctx = plan->window, .n_vocab = recording->n_vocab, .n_chunks = plan->n_windows};
    char *bytes = make_head(&shape, plan, recording->stream);
    struct logits_writer *writer = calloc(1, sizeof *writer);
    if (!bytes || !writer) {
        free(bytes);
        free(writer);
        return status_fail(why, STATUS_MEMORY, "%s: out of memory", recording->path);
    }
    struct eval_writer *w = &writer->writer;
    writer->shape = shape;
    *w = (struct eval_writer){
        .format = &format,
        .n_windows = shape.n_chunks,
        .n_scored = eval_logits_n_scored(&shape),
        .rows_at = eval_logits_head_bytes(&shape),
        .row_bytes = eval_logits_record_bytes(&shape),
        .given_bytes = eval_logits_record_bytes(&shape),
        .has_checks = recording->journal,
    };
    struct base_part_options options = {.n_bytes = eval_logits_file_bytes(&shape),
                                        .kind = BASE_LOGITS,
                                        .only_new = recording->only_new,
                                        .force = recording->force,
                                        .resume = recording->resume};
    struct eval_writer_head head = {bytes, (size_t)w->rows_at,
                                    "other tokens, windows or vocabulary"};
    enum status status = eval_writer_begin(w, recording->path, &options, &head, why);
    free(bytes);
    if (status)
        eval_writer_abandon(w);
    else
        *out = w;
    return status;
}
