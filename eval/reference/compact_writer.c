#include "eval/reference/compact_writer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "eval/reference/identity.h"

enum { ENCODED_ROWS = 64 }; /* stored at once */

struct eval_compact_writer {
    struct base_part *part;
    uint8_t header[EVAL_COMPACT_HEADER_BYTES];
    struct eval_compact_layout layout;
    struct eval_compact_places places;
    struct eval_compact_check *checks; /* [n_windows] */
    size_t n_kept;    /* windows from 0 on that the part held, by their checksums */
    uint8_t *encoded; /* [ENCODED_ROWS, row_bytes] */
    /* The window at work: its rows so far. */
    struct base_digest *digest;
    size_t window, n_rows;
};

static enum status hash(uint8_t sha256[BASE_SHA256_BYTES], const void *bytes, uint64_t n_bytes,
                        struct status_why *why)
{
    struct base_digest *digest = base_digest_open();
    base_digest_add(digest, bytes, (size_t)n_bytes);
    return base_digest_close_bytes(digest, sha256, why);
}

static uint8_t hex_value(char digit)
{
    return (uint8_t)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
}

/** A digest's bytes from its digits. */
static void from_hex(uint8_t bytes[BASE_SHA256_BYTES], const char hex[BASE_HEX])
{
    for (size_t i = 0; i < BASE_SHA256_BYTES; i++)
        bytes[i] = (uint8_t)(hex_value(hex[2 * i]) << 4 | hex_value(hex[2 * i + 1]));
}

/** A part of the file before the rows. */
struct piece {
    uint64_t offset, n_bytes;
    const void *bytes;
    uint8_t *sha256; /* in the layout */
};
enum { N_PIECES = 5, HEAD_PIECE = N_PIECES - 1 };

static void list_pieces(struct piece pieces[N_PIECES], struct eval_compact_writer *w,
                        const struct eval_compact_recording *recording)
{
    struct eval_compact_layout *l = &w->layout;
    const struct eval_compact_places *at = &w->places;
    const struct kern_weight *head = model_head(recording->model);
    const struct eval_stream *stream = recording->stream;
    pieces[0] =
        (struct piece){at->tokens, l->n_tokens * sizeof *stream->ids, stream->ids, l->tokens};
    pieces[1] = (struct piece){at->lengths, l->n_tokens * sizeof *stream->n_text_bytes,
                               stream->n_text_bytes, l->lengths};
    pieces[2] =
        (struct piece){at->description, l->n_description, recording->description, l->description};
    pieces[3] = (struct piece){at->path, l->n_path, recording->head_path, l->path};
    pieces[HEAD_PIECE] =
        (struct piece){at->head, (uint64_t)head->n_rows * head->row_bytes, head->data, l->head};
}

/** Everything that the header says, and where things are. */
static enum status lay_out(struct eval_compact_writer *w,
                           const struct eval_compact_recording *recording, struct status_why *why)
{
    const struct eval_plan *plan = recording->plan;
    const struct kern_weight *head = model_head(recording->model);
    w->layout = (struct eval_compact_layout){
        .kind = recording->kind,
        .width = head->n_cols,
        .n_vocab = head->n_rows,
        .by_path = recording->head_path != NULL,
        .head_type = head->type,
        .head_scale = head->scale,
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
    enum status status = eval_compact_place(&w->places, &w->layout, why);
    struct piece pieces[N_PIECES];
    list_pieces(pieces, w, recording);
    for (size_t i = 0; i < N_PIECES && status == STATUS_OK; i++)
        status = hash(pieces[i].sha256, pieces[i].bytes, pieces[i].n_bytes, why);
    char vocab[BASE_HEX];
    if (status == STATUS_OK)
        status = eval_vocab_id(vocab, recording->model, why);
    if (status == STATUS_OK) {
        from_hex(w->layout.vocab, vocab);
        from_hex(w->layout.model, recording->model_id);
    }
    return status;
}

/** Compare the header that a part was begun with. */
static enum status check_kept(struct eval_compact_writer *w, struct status_why *why)
{
    uint8_t kept[EVAL_COMPACT_HEADER_BYTES];
    enum status status = base_part_read(w->part, 0, kept, sizeof kept, why);
    if (status == STATUS_OK && memcmp(kept, w->header, sizeof kept) != 0)
        status = status_fail(why, STATUS_FORMAT,
                             "%s: was begun with another model, text or other settings; remove it "
                             "to begin anew",
                             base_part_path(w->part));
    return status;
}

/** Everything before the checks. On a part that was begun with the same it changes nothing. */
static enum status write_front(struct eval_compact_writer *w,
                               const struct eval_compact_recording *recording,
                               struct status_why *why)
{
    struct piece pieces[N_PIECES];
    list_pieces(pieces, w, recording);
    enum status status = eval_compact_header_encode(w->header, &w->layout, why);
    if (status == STATUS_OK && base_part_kept(w->part) >= sizeof w->header)
        status = check_kept(w, why);
    if (status != STATUS_OK || base_part_is_whole(w->part))
        return status;
    status = base_part_write(w->part, 0, w->header, sizeof w->header, why);
    size_t n = w->layout.by_path ? HEAD_PIECE : N_PIECES;
    for (size_t i = 0; i < n && status == STATUS_OK; i++)
        status = base_part_write(w->part, pieces[i].offset, pieces[i].bytes,
                                 (size_t)pieces[i].n_bytes, why);
    return status;
}

static uint64_t check_at(const struct eval_compact_writer *w, size_t window)
{
    return w->places.checks + window * EVAL_COMPACT_CHECK_BYTES;
}

/** Whether the part holds all of a window; its check is then known. */
static enum status take_window(struct eval_compact_writer *w, size_t window, bool *whole,
                               struct status_why *why)
{
    uint8_t check[EVAL_COMPACT_CHECK_BYTES], sha256[BASE_SHA256_BYTES];
    struct base_digest *digest = base_digest_open();
    enum status status = base_part_read(w->part, check_at(w, window), check, sizeof check, why);
    for (uint64_t row = 0; row < w->layout.n_scored && status == STATUS_OK;) {
        uint64_t left = w->layout.n_scored - row, n = left < ENCODED_ROWS ? left : ENCODED_ROWS;
        size_t n_bytes = (size_t)(n * w->places.row_bytes);
        status = base_part_read(
            w->part, w->places.rows + window * w->places.window_bytes + row * w->places.row_bytes,
            w->encoded, n_bytes, why);
        base_digest_add(digest, w->encoded, n_bytes);
        row += n;
    }
    base_digest_add(digest, check, EVAL_COMPACT_CHECK_COVERED);
    enum status hashed = base_digest_close_bytes(digest, sha256, why);
    eval_compact_check_decode(&w->checks[window], check);
    *whole = memcmp(sha256, w->checks[window].sha256, sizeof sha256) == 0 &&
             w->checks[window].window == window;
    return status == STATUS_OK ? hashed : status;
}

static enum status count_kept(struct eval_compact_writer *w, struct status_why *why)
{
    uint64_t kept = base_part_kept(w->part);
    uint64_t n_rows = kept > w->places.rows ? kept - w->places.rows : 0;
    bool whole = true;
    while (whole && w->n_kept < w->layout.n_windows &&
           n_rows / w->places.window_bytes > w->n_kept) {
        enum status status = take_window(w, w->n_kept, &whole, why);
        if (status != STATUS_OK)
            return status;
        w->n_kept += whole;
    }
    return STATUS_OK;
}

static enum status begin(struct eval_compact_writer *w,
                         const struct eval_compact_recording *recording, struct status_why *why)
{
    enum status status = lay_out(w, recording, why);
    if (status != STATUS_OK)
        return status;
    w->encoded = malloc(ENCODED_ROWS * (size_t)w->places.row_bytes);
    w->checks = calloc(w->layout.n_windows, sizeof *w->checks);
    if (!w->encoded || !w->checks)
        return status_fail(why, STATUS_MEMORY, "%s: out of memory", recording->path);
    struct base_part_options options = {
        .n_bytes = w->places.end, .replace = recording->replace, .resume = recording->resume};
    status = base_part_open(&w->part, recording->path, &options, why);
    if (status == STATUS_OK)
        status = write_front(w, recording, why);
    return status == STATUS_OK ? count_kept(w, why) : status;
}

enum status eval_compact_writer_open(struct eval_compact_writer **out,
                                     const struct eval_compact_recording *recording,
                                     struct status_why *why)
{
    *out = NULL;
    assert(recording->plan->options.protocol == EVAL_PROTOCOL_DEFAULT);
    assert(recording->plan->options.skip_windows == 0);
    struct eval_compact_writer *w = calloc(1, sizeof *w);
    if (!w)
        return status_fail(why, STATUS_MEMORY, "%s: out of memory", recording->path);
    enum status status = begin(w, recording, why);
    if (status != STATUS_OK) {
        /* What was kept belongs to another recording, or has just been begun. */
        eval_compact_writer_close(w, w->part && base_part_kept(w->part));
        return status;
    }
    *out = w;
    return STATUS_OK;
}

bool eval_compact_writer_is_whole(const struct eval_compact_writer *w)
{
    return base_part_is_whole(w->part);
}

uint64_t eval_compact_writer_n_bytes(const struct eval_compact_writer *w)
{
    return w->places.end;
}

struct eval_compact_error eval_compact_writer_error(const struct eval_compact_writer *w)
{
    struct eval_compact_error sum = {0};
    for (size_t i = 0; i < w->layout.n_windows; i++)
        eval_compact_error_add(&sum, &w->checks[i].error);
    return sum;
}

enum status eval_compact_writer_id(char hex[BASE_HEX], const struct eval_compact_writer *w,
                                   struct status_why *why)
{
    struct base_digest *digest = base_digest_open();
    base_digest_add(digest, w->header, sizeof w->header);
    for (size_t i = 0; i < w->layout.n_windows; i++) {
        uint8_t bytes[EVAL_COMPACT_CHECK_BYTES];
        eval_compact_check_encode(bytes, &w->checks[i]);
        base_digest_add(digest, bytes, sizeof bytes);
    }
    return base_digest_close(digest, hex, why);
}

/** A window's first row is here: whatever was begun before is not finished any more. */
static void begin_window(struct eval_compact_writer *w, size_t window)
{
    base_digest_discard(w->digest);
    w->digest = base_digest_open();
    w->window = window;
    w->n_rows = 0;
    w->checks[window] = (struct eval_compact_check){.window = window};
}

static enum status end_window(struct eval_compact_writer *w, struct status_why *why)
{
    struct eval_compact_check *check = &w->checks[w->window];
    uint8_t bytes[EVAL_COMPACT_CHECK_BYTES];
    eval_compact_check_encode(bytes, check);
    base_digest_add(w->digest, bytes, EVAL_COMPACT_CHECK_COVERED);
    enum status status = base_digest_close_bytes(w->digest, check->sha256, why);
    w->digest = NULL;
    if (status != STATUS_OK)
        return status;
    eval_compact_check_encode(bytes, check);
    return base_part_write(w->part, check_at(w, w->window), bytes, sizeof bytes, why);
}

/** Store rows of one window, no more than ENCODED_ROWS. */
static enum status write_some(struct eval_compact_writer *w, size_t first, size_t n_rows,
                              const float *rows, struct status_why *why)
{
    size_t n_scored = (size_t)w->layout.n_scored;
    if (first % n_scored == 0)
        begin_window(w, first / n_scored);
    assert(w->window == first / n_scored && w->n_rows == first % n_scored);
    size_t n_bytes = n_rows * (size_t)w->places.row_bytes;
    eval_compact_rows_encode(w->layout.kind, w->encoded, rows, n_rows, (size_t)w->layout.width,
                             &w->checks[w->window].error);
    base_digest_add(w->digest, w->encoded, n_bytes);
    enum status status = base_part_write(w->part, w->places.rows + first * w->places.row_bytes,
                                         w->encoded, n_bytes, why);
    w->n_rows += n_rows;
    return status == STATUS_OK && w->n_rows == n_scored ? end_window(w, why) : status;
}

static enum status write_rows(void *user, struct kern_backend *backend, size_t first, size_t n_rows,
                              const void *rows, struct status_why *why)
{
    (void)backend;
    struct eval_compact_writer *w = user;
    size_t n_scored = (size_t)w->layout.n_scored, width = (size_t)w->layout.width;
    enum status status = STATUS_OK;
    for (size_t done = 0; done < n_rows && status == STATUS_OK;) {
        size_t n = n_scored - (first + done) % n_scored;
        n = n < n_rows - done ? n : n_rows - done;
        n = n < ENCODED_ROWS ? n : ENCODED_ROWS;
        status = write_some(w, first + done, n, (const float *)rows + done * width, why);
        done += n;
    }
    return status;
}

static enum status sync_rows(void *user, struct status_why *why)
{
    struct eval_compact_writer *w = user;
    return base_part_sync(w->part, why);
}

/* The SHA-256 of the window's check, which is in the file, too. */
static enum status save_sum(void *user, size_t window, double *state, struct status_why *why)
{
    (void)why;
    const struct eval_compact_writer *w = user;
    memcpy(state, w->checks[window].sha256, BASE_SHA256_BYTES);
    return STATUS_OK;
}

static enum status compare_sum(void *user, size_t window, const double *state, bool *same,
                               struct status_why *why)
{
    (void)why;
    const struct eval_compact_writer *w = user;
    *same = window < w->n_kept && memcmp(state, w->checks[window].sha256, BASE_SHA256_BYTES) == 0;
    return STATUS_OK;
}

struct eval_row_sink eval_compact_writer_sink(struct eval_compact_writer *w)
{
    return (struct eval_row_sink){
        .kind = EVAL_ROWS_HIDDEN,
        .user = w,
        .write = write_rows,
        .n_state = BASE_SHA256_DOUBLES,
        .sync = sync_rows,
        .save = save_sum,
        .restore = compare_sum,
    };
}

enum status eval_compact_writer_commit(struct eval_compact_writer *w, struct status_why *why)
{
    enum status status = base_part_commit(w->part, why);
    w->part = NULL;
    eval_compact_writer_close(w, true);
    return status;
}

void eval_compact_writer_close(struct eval_compact_writer *w, bool keep)
{
    if (!w)
        return;
    base_digest_discard(w->digest);
    base_part_close(w->part, keep);
    free(w->encoded);
    free(w->checks);
    free(w);
}
