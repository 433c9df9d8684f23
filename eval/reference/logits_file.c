#include "eval/reference/logits_file.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/content/kind.h"
#include "base/content/written.h"
#include "base/text/quote.h"
#include "eval/llama_compat.h"
#include "kernels/types.h"

const char eval_logits_magic[EVAL_LOGITS_MAGIC_BYTES] = BASE_LOGITS_MAGIC;

enum { FIXED_BYTES = EVAL_LOGITS_MAGIC_BYTES + EVAL_LOGITS_COUNTS * sizeof(int32_t), MIN_CTX = 3 };

size_t eval_logits_first_scored(const struct eval_logits_shape *shape)
{
    return shape->n_ctx / 2;
}

size_t eval_logits_n_scored(const struct eval_logits_shape *shape)
{
    return shape->n_ctx - 1 - shape->n_ctx / 2;
}

size_t eval_logits_record_bytes(const struct eval_logits_shape *shape)
{
    return kern_record_codes(shape->n_vocab) * sizeof(uint16_t);
}

/* Counts are below 2^31: neither the tokens nor the records of a chunk can overflow. */
uint64_t eval_logits_head_bytes(const struct eval_logits_shape *shape)
{
    return FIXED_BYTES + (uint64_t)shape->n_chunks * shape->n_ctx * sizeof(int32_t);
}

uint64_t eval_logits_chunk_bytes(const struct eval_logits_shape *shape)
{
    return (uint64_t)eval_logits_n_scored(shape) * eval_logits_record_bytes(shape);
}

uint64_t eval_logits_file_bytes(const struct eval_logits_shape *shape)
{
    uint64_t head = eval_logits_head_bytes(shape), chunk = eval_logits_chunk_bytes(shape);
    if (shape->n_chunks > (UINT64_MAX - head) / chunk)
        return UINT64_MAX;
    return head + shape->n_chunks * chunk;
}

/* n: how many of the first bytes are shown. */
static enum status fail_magic(const struct eval_logits_file *file, size_t n, struct status_why *why)
{
    struct base_quoted quoted;
    const struct base_string all = {file->bytes, file->n_bytes};
    enum status status = base_file_check_kind(all, "a base-logits file", why);
    if (status)
        status_context(why, "%s", file->name);
    return status ? status
                  : status_fail(why, STATUS_FORMAT,
                                "%s: begins with %s; a base-logits file begins with '_logits_'",
                                file->name, base_quote(&quoted, (struct base_string){all.data, n}));
}

static enum status check_magic(const struct eval_logits_file *file, struct status_why *why)
{
    size_t n = file->n_bytes < EVAL_LOGITS_MAGIC_BYTES ? file->n_bytes : EVAL_LOGITS_MAGIC_BYTES;
    if (n < EVAL_LOGITS_MAGIC_BYTES || memcmp(file->bytes, eval_logits_magic, n) != 0)
        return fail_magic(file, n, why);
    if (file->n_bytes < FIXED_BYTES)
        return status_fail(why, STATUS_FORMAT,
                           "%s: ends at byte %zu, within its header of %zu bytes", file->name,
                           file->n_bytes, (size_t)FIXED_BYTES);
    return STATUS_OK;
}

static enum status read_shape(struct eval_logits_file *file, struct status_why *why)
{
    static const char *const names[EVAL_LOGITS_COUNTS] = {"n_ctx", "n_vocab", "n_chunk"};
    static const int32_t least[EVAL_LOGITS_COUNTS] = {MIN_CTX, 1, 1};
    int32_t counts[EVAL_LOGITS_COUNTS];
    memcpy(counts, (const char *)file->bytes + EVAL_LOGITS_MAGIC_BYTES, sizeof counts);
    for (size_t i = 0; i < EVAL_LOGITS_COUNTS; i++)
        if (counts[i] < least[i])
            return status_fail(why, STATUS_FORMAT,
                               "%s: %s is %" PRId32 "; expected at least %" PRId32, file->name,
                               names[i], counts[i], least[i]);
    file->shape = (struct eval_logits_shape){
        .n_ctx = (size_t)counts[0], .n_vocab = (size_t)counts[1], .n_chunks = (size_t)counts[2]};
    return STATUS_OK;
}

static enum status check_tokens(struct eval_logits_file *file, struct status_why *why)
{
    const struct eval_logits_shape *shape = &file->shape;
    uint64_t n_head = eval_logits_head_bytes(shape);
    if (n_head > file->n_bytes)
        return status_fail(
            why, STATUS_FORMAT,
            "%s: ends at byte %zu, within the tokens of its %zu chunk%s of %zu, which "
            "end at byte %" PRIu64 ": no chunk is whole",
            file->name, file->n_bytes, shape->n_chunks, status_plural(shape->n_chunks),
            shape->n_ctx, n_head);
    file->ids = (const int32_t *)(const void *)((const char *)file->bytes + FIXED_BYTES);
    file->records = (const char *)file->bytes + n_head;
    for (size_t i = 0; i < shape->n_chunks * shape->n_ctx; i++)
        if (file->ids[i] < 0 || (size_t)file->ids[i] >= shape->n_vocab)
            return status_fail(why, STATUS_FORMAT,
                               "%s: token %zu of chunk %zu is %" PRId32
                               "; expected 0 to %zu, as its vocabulary has %zu token%s",
                               file->name, i % shape->n_ctx, i / shape->n_ctx, file->ids[i],
                               shape->n_vocab - 1, shape->n_vocab, status_plural(shape->n_vocab));
    return STATUS_OK;
}

static enum status count_chunks(struct eval_logits_file *file, struct status_why *why)
{
    const struct eval_logits_shape *shape = &file->shape;
    uint64_t chunk = eval_logits_chunk_bytes(shape);
    uint64_t n_records = file->n_bytes - eval_logits_head_bytes(shape);
    uint64_t n_whole = n_records / chunk;
    if (n_whole > shape->n_chunks || (n_whole == shape->n_chunks && n_records % chunk))
        return status_fail(why, STATUS_FORMAT,
                           "%s: has %zu bytes; expected %" PRIu64 " for %zu chunk%s of %zu tokens "
                           "and a vocabulary of %zu",
                           file->name, file->n_bytes, eval_logits_file_bytes(shape),
                           shape->n_chunks, status_plural(shape->n_chunks), shape->n_ctx,
                           shape->n_vocab);
    file->n_whole = (size_t)n_whole;
    return STATUS_OK;
}

enum status eval_logits_view(struct eval_logits_file *out, const char *name, const void *bytes,
                             size_t n_bytes, struct status_why *why)
{
    struct eval_logits_file file = {.name = name, .bytes = bytes, .n_bytes = n_bytes};
    *out = (struct eval_logits_file){0};
    enum status status = check_magic(&file, why);
    if (!status)
        status = read_shape(&file, why);
    if (!status)
        status = check_tokens(&file, why);
    if (!status)
        status = count_chunks(&file, why);
    if (!status)
        *out = file;
    return status;
}

enum status eval_logits_open(struct eval_logits_file *out, const char *path, struct status_why *why)
{
    struct gguf_map map;
    *out = (struct eval_logits_file){0};
    enum status status = gguf_map_open(&map, path, why);
    if (!status)
        status = eval_logits_view(out, path, map.data, map.n_bytes, why);
    if (status)
        gguf_map_close(&map);
    else
        out->map = map;
    return status;
}

void eval_logits_close(struct eval_logits_file *file)
{
    gguf_map_close(&file->map);
    *file = (struct eval_logits_file){0};
}

enum status eval_logits_check_chunks(const struct eval_logits_file *file, size_t first, size_t n,
                                     struct status_why *why)
{
    size_t n_chunks = file->shape.n_chunks;
    if (first >= n_chunks || n > n_chunks - first)
        return status_fail(why, STATUS_USAGE, "%s: has %zu chunk%s; there is no chunk %zu (from 0)",
                           file->name, n_chunks, status_plural(n_chunks),
                           first >= n_chunks ? first : first + n - 1);
    if (n <= file->n_whole && first <= file->n_whole - n)
        return STATUS_OK;
    size_t n_left = first < file->n_whole ? file->n_whole - first : 0;
    char remedy[112] = "";
    if (n_left)
        snprintf(remedy, sizeof remedy, "; --chunks %zu of assay kld and check evaluates those%s",
                 n_left, first ? " from the first chosen one on" : "");
    return status_fail(why, STATUS_FORMAT,
                       "%s: ends at byte %zu of %" PRIu64 ": %zu of its %zu chunk%s whole%s",
                       file->name, file->n_bytes, eval_logits_file_bytes(&file->shape),
                       file->n_whole, n_chunks, n_chunks == 1 ? " is" : "s are", remedy);
}

static enum status check_same_tokens(const struct eval_logits_file *a,
                                     const struct eval_logits_file *b, size_t first, size_t n,
                                     struct status_why *why)
{
    size_t n_ctx = a->shape.n_ctx;
    for (size_t i = first * n_ctx; i < (first + n) * n_ctx; i++)
        if (a->ids[i] != b->ids[i])
            return status_fail(why, STATUS_FORMAT,
                               "%s and %s are of other texts: token %zu of chunk %zu is %" PRId32
                               " in the first, %" PRId32 " in the second",
                               a->name, b->name, i % n_ctx, i / n_ctx, a->ids[i], b->ids[i]);
    return STATUS_OK;
}

enum status eval_logits_check_same(const struct eval_logits_file *a,
                                   const struct eval_logits_file *b, size_t first, size_t n,
                                   struct status_why *why)
{
    const struct eval_logits_shape *in_a = &a->shape, *in_b = &b->shape;
    bool other_windows = in_a->n_ctx != in_b->n_ctx;
    if (other_windows || in_a->n_vocab != in_b->n_vocab)
        return status_fail(why, STATUS_FORMAT,
                           "%s and %s cannot be compared: %s %zu tokens in the first, %zu in the "
                           "second",
                           a->name, b->name, other_windows ? "a window has" : "the vocabulary has",
                           other_windows ? in_a->n_ctx : in_a->n_vocab,
                           other_windows ? in_b->n_ctx : in_b->n_vocab);
    if (first + n > in_b->n_chunks && first < in_b->n_chunks)
        return status_fail(why, STATUS_USAGE,
                           "%s has %zu windows, %s %zu; --chunks %zu compares those that both have",
                           a->name, in_a->n_chunks, b->name, in_b->n_chunks,
                           in_b->n_chunks - first);
    enum status status = eval_logits_check_chunks(b, first, n, why);
    if (!status)
        status = check_same_tokens(a, b, first, n, why);
    if (status)
        return status;
    /* Below 24 nats no floor counts: codes that go further may go as far as they like. */
    const double deep = EVAL_COMPAT_LOGITS_REACH_IK;
    double reach_a = fmin(eval_logits_reach(eval_logits_step(a)), deep);
    double reach_b = fmin(eval_logits_reach(eval_logits_step(b)), deep);
    if (reach_a != reach_b)
        return status_fail(why, STATUS_FORMAT,
                           "%s and %s are of programs that record in other ways: codes reach %g "
                           "nats below the largest probability in the first, %g in the second; "
                           "record both with the same program",
                           a->name, b->name, reach_a, reach_b);
    return STATUS_OK;
}

/* Rounding to codes and to float32 stays well within the tolerance; tokens raised to the floor add
 * V e^-reach to the sum at most. */
bool eval_logits_adds_up(double log_sum, size_t n_vocab)
{
    const double tolerance = 1e-3;
    double raised = (double)n_vocab * exp(-EVAL_COMPAT_LOGITS_REACH);
    return log_sum >= -tolerance && log_sum <= log1p(raised) + tolerance;
}

double eval_logits_step(const struct eval_logits_file *file)
{
    float step = 0;
    for (size_t i = 0; i < file->n_whole; i++) {
        float scale;
        memcpy(&scale, (const char *)file->records + i * eval_logits_chunk_bytes(&file->shape),
               sizeof scale);
        step = scale > step && isfinite(scale) ? scale : step;
    }
    return (double)step;
}

double eval_logits_reach(double step)
{
    double found = EVAL_LOGITS_MAX_CODE * step * (1 - 1e-6); /* the step is a rounded float */
    if (found <= EVAL_COMPAT_LOGITS_REACH)
        return EVAL_COMPAT_LOGITS_REACH;
    return fmax(found, EVAL_COMPAT_LOGITS_REACH_IK);
}

enum status eval_logits_id(char hex[BASE_HEX], const struct eval_logits_file *file,
                           struct status_why *why)
{
    struct base_digest *digest = base_digest_open();
    uint64_t n_chunk = eval_logits_chunk_bytes(&file->shape);
    base_digest_add(digest, file->bytes, (size_t)eval_logits_head_bytes(&file->shape));
    size_t n = n_chunk < EVAL_LOGITS_ID_PREFIX ? (size_t)n_chunk : EVAL_LOGITS_ID_PREFIX;
    for (size_t i = 0; i < file->n_whole; i++)
        base_digest_add(digest, (const char *)file->records + i * n_chunk, n);
    return base_digest_close(digest, hex, why);
}
