#include "eval/reference/compact_writer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "eval/identity.h"
#include "eval/reference/compact_documents.h"

enum { ENCODED_ROWS = 64 }; /* stored at once */

struct compact_writer {
    struct eval_writer writer;
    struct eval_compact_layout layout;
    struct eval_compact_offsets offsets;
    uint8_t *documents; /* [documents_bytes]; NULL: it is one text */
    uint8_t *encoded;   /* [ENCODED_ROWS, row_bytes] */
};

/** A part of the file before the rows. */
struct piece {
    uint64_t offset, n_bytes;
    const void *bytes;
    uint8_t *sha256; /* in the layout */
};
enum { BIAS_PIECE = 4, HEAD_PIECE, DOCUMENTS_PIECE, N_PIECES };

static void list_pieces(struct piece pieces[N_PIECES], struct compact_writer *w,
                        const struct eval_compact_recording *recording)
{
    struct eval_compact_layout *l = &w->layout;
    const struct eval_compact_offsets *at = &w->offsets;
    const struct kern_weight *head = model_head(recording->model);
    const struct eval_stream *stream = recording->stream;
    pieces[0] =
        (struct piece){at->tokens, l->n_tokens * sizeof *stream->ids, stream->ids, l->tokens};
    pieces[1] = (struct piece){at->lengths, l->n_tokens * sizeof *stream->n_text_bytes,
                               stream->n_text_bytes, l->lengths};
    pieces[2] =
        (struct piece){at->description, l->n_description, recording->description, l->description};
    pieces[3] = (struct piece){at->path, l->n_path, recording->head_path, l->path};
    const struct kern_weight *bias = model_kern_head(recording->model).bias;
    pieces[BIAS_PIECE] =
        (struct piece){at->bias, at->bias_bytes, bias ? bias->data : NULL, l->bias};
    pieces[HEAD_PIECE] =
        (struct piece){at->head, (uint64_t)head->n_rows * head->row_bytes, head->data, l->head};
    pieces[DOCUMENTS_PIECE] =
        (struct piece){at->files, at->documents_bytes, w->documents, l->documents};
}

/** What the header says but for digests. */
static struct eval_compact_layout layout_of(const struct eval_compact_recording *recording)
{
    const struct eval_plan *plan = recording->plan;
    const struct kern_weight *head = model_head(recording->model);
    const struct kern_head whole = model_kern_head(recording->model);
    struct eval_compact_layout layout = {
        .kind = recording->kind,
        .width = head->n_cols,
        .n_vocab = head->n_rows,
        .by_path = recording->head_path != NULL,
        .head_type = head->type,
        .head_scale = head->scale,
        .soft_cap = whole.soft_cap,
        .has_bias = whole.bias != NULL,
        .bias_type = whole.bias ? whole.bias->type : 0,
        .bos = plan->bos_use == EVAL_BOS_NONE ? -1 : plan->options.bos,
        .bos_in_stream = recording->stream->has_bos,
        .n_ctx = plan->options.n_ctx,
        .first_scored = plan->first_scored,
        .n_scored = plan->n_scored,
        .n_windows = plan->n_windows,
        .n_tokens = recording->stream->n,
        .n_description = strlen(recording->description),
        .n_path = recording->head_path ? strlen(recording->head_path) : 0,
    };
    if (recording->documents) {
        layout.n_scored = eval_plan_row(plan, plan->n_windows);
        eval_compact_documents_count(&layout, recording->documents);
    }
    return layout;
}

enum status eval_compact_recording_bytes(uint64_t *out,
                                         const struct eval_compact_recording *recording,
                                         struct status_why *why)
{
    struct eval_compact_layout layout = layout_of(recording);
    struct eval_compact_offsets offsets;
    enum status status = eval_compact_find_offsets(&offsets, &layout, why);
    *out = offsets.end;
    return status;
}

/** Everything that the header says, and where things are. */
static enum status lay_out(struct compact_writer *w, const struct eval_compact_recording *recording,
                           struct status_why *why)
{
    w->layout = layout_of(recording);
    enum status status = eval_compact_find_offsets(&w->offsets, &w->layout, why);
    if (!status && recording->documents)
        status =
            eval_compact_documents_encode(&w->documents, recording->documents, &w->offsets, why);
    struct piece pieces[N_PIECES];
    list_pieces(pieces, w, recording);
    for (size_t i = 0; i < N_PIECES && !status; i++)
        if ((i != BIAS_PIECE || w->layout.has_bias) && (i != DOCUMENTS_PIECE || w->documents))
            status = eval_compact_sha256(pieces[i].sha256, pieces[i].bytes,
                                         (size_t)pieces[i].n_bytes, why);
    char vocab[BASE_HEX];
    if (!status)
        status = eval_vocab_id(vocab, recording->model, why);
    if (status)
        return status;
    base_digest_from_hex(w->layout.vocab, vocab);
    base_digest_from_hex(w->layout.model, recording->model_id);
    return eval_compact_header_seal(&w->layout, why);
}

/** Everything between the header and the checks, again where the part has it. */
static enum status write_pieces(struct compact_writer *w,
                                const struct eval_compact_recording *recording,
                                struct status_why *why)
{
    struct piece pieces[N_PIECES];
    list_pieces(pieces, w, recording);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < N_PIECES && !status && !base_part_is_whole(w->writer.part); i++)
        if (i != HEAD_PIECE || !w->layout.by_path)
            status = base_part_write(w->writer.part, pieces[i].offset, pieces[i].bytes,
                                     (size_t)pieces[i].n_bytes, why);
    return status;
}

static struct eval_compact_check *check_of(const struct compact_writer *w, size_t window)
{
    return (struct eval_compact_check *)(void *)eval_writer_check(&w->writer, window);
}

static void begin_check(struct eval_writer *writer, size_t window)
{
    *check_of((struct compact_writer *)writer, window) =
        (struct eval_compact_check){.window = window};
}

static const void *encode(struct eval_writer *writer, size_t window, const void *rows,
                          size_t n_rows)
{
    struct compact_writer *w = (struct compact_writer *)writer;
    eval_compact_rows_encode(w->layout.kind, w->encoded, rows, n_rows, (size_t)w->layout.width,
                             &check_of(w, window)->error);
    return w->encoded;
}

static void release(struct eval_writer *writer)
{
    free(((struct compact_writer *)writer)->encoded);
    free(((struct compact_writer *)writer)->documents);
}

/** Where the rows of each window begin. */
static enum status list_windows(struct eval_writer *writer, const struct eval_plan *plan,
                                struct status_why *why)
{
    if (base_array_new(writer->first_rows, plan->n_windows + 1, "windows", why))
        return STATUS_MEMORY;
    for (size_t i = 0; i <= plan->n_windows; i++)
        writer->first_rows[i] = eval_plan_row(plan, i);
    return STATUS_OK;
}

static enum status begin(struct compact_writer *w, const struct eval_compact_recording *recording,
                         struct status_why *why)
{
    static const struct eval_writer_format format = {
        .kind = EVAL_ROWS_HIDDEN,
        .begin = begin_check,
        .encode = encode,
        .max_encoded = ENCODED_ROWS,
        .release = release,
    };
    w->writer.format = &format;
    enum status status = lay_out(w, recording, why);
    if (status)
        return status;
    w->encoded = malloc(ENCODED_ROWS * (size_t)w->offsets.row_bytes);
    if (!w->encoded)
        return status_fail(why, STATUS_MEMORY, "%s: out of memory", recording->path);
    w->writer = (struct eval_writer){
        .format = &format,
        .n_windows = (size_t)w->layout.n_windows,
        .n_scored = (size_t)w->layout.n_scored,
        .rows_at = w->offsets.rows,
        .row_bytes = (size_t)w->offsets.row_bytes,
        .given_bytes = (size_t)w->layout.width * sizeof(float),
        .has_checks = true,
        .n_covered = EVAL_COMPACT_CHECK_COVERED,
        .checks_at = w->offsets.checks,
    };
    if (recording->documents)
        status = list_windows(&w->writer, recording->plan, why);
    if (status)
        return status;
    struct base_part_options options = {.n_bytes = w->offsets.end,
                                        .kind = BASE_COMPACT,
                                        .only_new = recording->only_new,
                                        .force = recording->force,
                                        .resume = recording->resume};
    struct eval_writer_head head = {&w->layout, sizeof w->layout,
                                    "another model, text or other settings"};
    status = eval_writer_begin(&w->writer, recording->path, &options, &head, why);
    return status ? status : write_pieces(w, recording, why);
}

enum status eval_compact_writer_open(struct eval_writer **out,
                                     const struct eval_compact_recording *recording,
                                     struct status_why *why)
{
    *out = NULL;
    assert(recording->plan->options.protocol ==
           (recording->documents ? EVAL_PROTOCOL_DOCUMENTS : EVAL_PROTOCOL_DEFAULT));
    assert(recording->plan->options.skip_windows == 0);
    struct compact_writer *w = calloc(1, sizeof *w);
    if (!w)
        return status_fail(why, STATUS_MEMORY, "%s: out of memory", recording->path);
    enum status status = begin(w, recording, why);
    if (status)
        eval_writer_abandon(&w->writer);
    else
        *out = &w->writer;
    return status;
}

uint64_t eval_compact_writer_n_bytes(const struct eval_writer *writer)
{
    return ((const struct compact_writer *)writer)->offsets.end;
}

struct eval_compact_error eval_compact_writer_error(const struct eval_writer *writer)
{
    const struct compact_writer *w = (const struct compact_writer *)writer;
    struct eval_compact_error sum = {0};
    for (size_t i = 0; i < writer->n_windows; i++)
        eval_compact_error_add(&sum, &check_of(w, i)->error);
    return sum;
}

enum status eval_compact_writer_id(char hex[BASE_HEX], const struct eval_writer *writer,
                                   struct status_why *why)
{
    const struct compact_writer *w = (const struct compact_writer *)writer;
    struct base_digest *digest = base_digest_open();
    base_digest_add(digest, &w->layout, sizeof w->layout);
    base_digest_add(digest, writer->checks, writer->n_windows * sizeof(struct eval_compact_check));
    return base_digest_close(digest, hex, why);
}
