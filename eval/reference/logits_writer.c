#include "eval/reference/logits_writer.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct eval_logits_writer {
    struct base_part *part;
    struct eval_logits_shape shape;
    uint8_t (*sums)[BASE_SHA256_BYTES]; /* [n_chunks]; NULL: nobody wants them */
    struct base_digest *digest;         /* of the chunk at work; NULL: none is */
    size_t n_digested;                  /* its records */
};

enum { PIECE_BYTES = 1 << 20 }; /* read at once */

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

/** Compare what a part was begun with, which may be less than the whole head. */
static enum status check_kept(struct base_part *part, const char *head, size_t n_bytes,
                              struct status_why *why)
{
    char *kept = malloc(n_bytes + 1);
    if (!kept)
        return status_fail(why, STATUS_MEMORY, "%s: out of memory", base_part_path(part));
    enum status status = base_part_read(part, 0, kept, n_bytes, why);
    if (status == STATUS_OK && memcmp(kept, head, n_bytes) != 0)
        status = status_fail(why, STATUS_FORMAT,
                             "%s: was begun with other tokens, windows or vocabulary; remove it to "
                             "begin anew",
                             base_part_path(part));
    free(kept);
    return status;
}

static enum status begin(struct eval_logits_writer *writer,
                         const struct eval_logits_recording *recording, struct status_why *why)
{
    struct base_part_options options = {.n_bytes = eval_logits_file_bytes(&writer->shape),
                                        .replace = recording->replace,
                                        .resume = recording->resume};
    enum status status = base_part_open(&writer->part, recording->path, &options, why);
    if (status != STATUS_OK)
        return status;
    if (recording->journal) {
        writer->sums = calloc(writer->shape.n_chunks, sizeof *writer->sums);
        if (!writer->sums)
            return status_fail(why, STATUS_MEMORY, "%s: out of memory", recording->path);
    }
    size_t n_head = (size_t)eval_logits_head_bytes(&writer->shape);
    char *head = make_head(&writer->shape, recording->plan, recording->stream);
    if (!head)
        return status_fail(why, STATUS_MEMORY, "%s: out of memory", recording->path);
    uint64_t kept = base_part_kept(writer->part);
    status = check_kept(writer->part, head, kept < n_head ? (size_t)kept : n_head, why);
    if (status == STATUS_OK && kept < n_head)
        status = base_part_write(writer->part, 0, head, n_head, why);
    free(head);
    return status;
}

enum status eval_logits_writer_open(struct eval_logits_writer **out,
                                    const struct eval_logits_recording *recording,
                                    struct status_why *why)
{
    *out = NULL;
    const struct eval_plan *plan = recording->plan;
    assert(plan->options.protocol == EVAL_PROTOCOL_DEFAULT);
    if (plan->window > INT32_MAX || recording->n_vocab > INT32_MAX || plan->n_windows > INT32_MAX)
        return status_fail(why, STATUS_USAGE,
                           "%s: %zu windows of %zu tokens; the format's counts have 31 bits",
                           recording->path, plan->n_windows, plan->window);
    struct eval_logits_writer *writer = calloc(1, sizeof *writer);
    if (!writer)
        return status_fail(why, STATUS_MEMORY, "%s: out of memory", recording->path);
    writer->shape = (struct eval_logits_shape){
        .n_ctx = plan->window, .n_vocab = recording->n_vocab, .n_chunks = plan->n_windows};
    enum status status = begin(writer, recording, why);
    if (status != STATUS_OK) {
        /* What was kept belongs to another recording, or has just been begun. */
        bool keep = writer->part && base_part_kept(writer->part);
        eval_logits_writer_close(writer, keep);
        return status;
    }
    *out = writer;
    return STATUS_OK;
}

/** Hash records, of which those of a chunk come in order, and note the sums of whole chunks. */
static enum status hash_rows(struct eval_logits_writer *writer, size_t first, size_t n_rows,
                             const char *rows, struct status_why *why)
{
    size_t n_scored = eval_logits_n_scored(&writer->shape);
    size_t n_record = eval_logits_record_bytes(&writer->shape);
    enum status status = STATUS_OK;
    for (size_t row = first; row < first + n_rows && status == STATUS_OK; row++) {
        if (row % n_scored == 0) {
            base_digest_discard(writer->digest);
            writer->digest = base_digest_open();
            writer->n_digested = 0;
        }
        assert(writer->n_digested == row % n_scored);
        base_digest_add(writer->digest, rows + (row - first) * n_record, n_record);
        if (++writer->n_digested < n_scored)
            continue;
        status = base_digest_close_bytes(writer->digest, writer->sums[row / n_scored], why);
        writer->digest = NULL;
    }
    return status;
}

static enum status write_rows(void *user, struct kern_backend *backend, size_t first, size_t n_rows,
                              const void *rows, struct status_why *why)
{
    (void)backend;
    struct eval_logits_writer *writer = user;
    uint64_t n_record = eval_logits_record_bytes(&writer->shape);
    enum status status = writer->sums ? hash_rows(writer, first, n_rows, rows, why) : STATUS_OK;
    if (status != STATUS_OK)
        return status;
    return base_part_write(writer->part, eval_logits_head_bytes(&writer->shape) + first * n_record,
                           rows, n_rows * (size_t)n_record, why);
}

static enum status sync_rows(void *user, struct status_why *why)
{
    struct eval_logits_writer *writer = user;
    return base_part_sync(writer->part, why);
}

static enum status save_sum(void *user, size_t w, double *state, struct status_why *why)
{
    (void)why;
    const struct eval_logits_writer *writer = user;
    memcpy(state, writer->sums[w], BASE_SHA256_BYTES);
    return STATUS_OK;
}

/** The sum of a chunk that the part has. */
static enum status hash_kept(const struct eval_logits_writer *writer, size_t w,
                             uint8_t sha256[BASE_SHA256_BYTES], struct status_why *why)
{
    uint64_t left = eval_logits_chunk_bytes(&writer->shape);
    uint64_t at = eval_logits_head_bytes(&writer->shape) + w * left;
    char *piece = malloc(PIECE_BYTES);
    if (!piece)
        return status_fail(why, STATUS_MEMORY, "%s: out of memory", base_part_path(writer->part));
    struct base_digest *digest = base_digest_open();
    enum status status = STATUS_OK;
    for (size_t n; left && status == STATUS_OK; left -= n, at += n) {
        n = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
        status = base_part_read(writer->part, at, piece, n, why);
        if (status == STATUS_OK)
            base_digest_add(digest, piece, n);
    }
    free(piece);
    enum status hashed = base_digest_close_bytes(digest, sha256, why);
    return status == STATUS_OK ? hashed : status;
}

static enum status compare_sum(void *user, size_t w, const double *state, bool *same,
                               struct status_why *why)
{
    struct eval_logits_writer *writer = user;
    uint8_t kept[BASE_SHA256_BYTES];
    *same = w < eval_logits_writer_n_kept(writer);
    enum status status = *same ? hash_kept(writer, w, kept, why) : STATUS_OK;
    *same = *same && status == STATUS_OK && memcmp(kept, state, sizeof kept) == 0;
    return status;
}

struct eval_row_sink eval_logits_writer_sink(struct eval_logits_writer *writer)
{
    struct eval_row_sink sink = {.kind = EVAL_ROWS_CODES, .user = writer, .write = write_rows};
    if (writer->sums) {
        sink.n_state = BASE_SHA256_DOUBLES;
        sink.sync = sync_rows;
        sink.save = save_sum;
        sink.restore = compare_sum;
    }
    return sink;
}

bool eval_logits_writer_is_whole(const struct eval_logits_writer *writer)
{
    return base_part_is_whole(writer->part);
}

size_t eval_logits_writer_n_kept(const struct eval_logits_writer *writer)
{
    uint64_t n_head = eval_logits_head_bytes(&writer->shape), n = base_part_kept(writer->part);
    return n > n_head ? (size_t)((n - n_head) / eval_logits_chunk_bytes(&writer->shape)) : 0;
}

static void release(struct eval_logits_writer *writer)
{
    base_digest_discard(writer->digest);
    free(writer->sums);
    free(writer);
}

enum status eval_logits_writer_commit(struct eval_logits_writer *writer, struct status_why *why)
{
    enum status status = base_part_commit(writer->part, why);
    release(writer);
    return status;
}

void eval_logits_writer_close(struct eval_logits_writer *writer, bool keep)
{
    if (!writer)
        return;
    base_part_close(writer->part, keep);
    release(writer);
}
