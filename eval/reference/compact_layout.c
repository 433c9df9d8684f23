#include "eval/reference/compact_layout.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

/** Limits that no model comes near; they keep products of sizes from overflowing. */
enum {
    MOST_WIDTH = 1 << 24,
    MOST_VOCAB = 1 << 28,
    MOST_DESCRIPTION = 1 << 24,
    MOST_PATH = 1 << 16
};

/** Bytes of the header that its checksum covers. */
enum { CHECKED_BYTES = offsetof(struct eval_compact_layout, check) };

/** Add up parts, each aligned; `failed` stays once a sum has left the range. */
struct sum {
    uint64_t at;
    bool failed;
};

static uint64_t add_part(struct sum *sum, uint64_t n, uint64_t bytes_each)
{
    uint64_t begin, n_bytes, padded;
    sum->failed |= __builtin_add_overflow(sum->at, EVAL_COMPACT_ALIGN - 1, &padded);
    begin = padded / EVAL_COMPACT_ALIGN * EVAL_COMPACT_ALIGN;
    sum->failed |= __builtin_mul_overflow(n, bytes_each, &n_bytes);
    sum->failed |= __builtin_add_overflow(begin, n_bytes, &sum->at);
    sum->failed |= sum->at > INT64_MAX;
    return begin;
}

static enum status fail_type(const char *what, uint32_t type, struct status_why *why)
{
    return status_fail(why, STATUS_UNSUPPORTED,
                       "the %s's type is %" PRIu32 " (%s), which cannot be decoded", what, type,
                       gguf_type_name(type));
}

/** The bytes of the head's bias, a row of n_vocab; 0 where there is none. */
static enum status find_bias_bytes(uint64_t *n_bytes, const struct eval_compact_layout *l,
                                   struct status_why *why)
{
    *n_bytes = 0;
    if (!l->has_bias)
        return STATUS_OK;
    const struct gguf_type_info *type = gguf_type_info(l->bias_type);
    if (!type)
        return fail_type("bias", l->bias_type, why);
    if (l->n_vocab % type->block_elems || type->bundle_rows > 1 || type->scale_elems > 0 ||
        !gguf_row_bytes(type, l->n_vocab, n_bytes))
        return status_fail(why, STATUS_FORMAT,
                           "the bias has type %s, of which there is no row of %" PRIu64
                           " elements; expected another type",
                           type->name, l->n_vocab);
    return STATUS_OK;
}

enum status eval_compact_find_offsets(struct eval_compact_offsets *out,
                                      const struct eval_compact_layout *l, struct status_why *why)
{
    *out = (struct eval_compact_offsets){0};
    const struct gguf_type_info *type = gguf_type_info(l->head_type);
    if (!type)
        return fail_type("head", l->head_type, why);
    if (!l->by_path && type->scale_elems > 0)
        return status_fail(
            why, STATUS_UNSUPPORTED,
            "the head has type %s, whose scales lie apart from its codes; and a base "
            "file has room for the codes only; record with --head-by-path",
            type->name);
    if (l->width % type->block_elems)
        return status_fail(why, STATUS_FORMAT,
                           "the width is %" PRIu64 "; expected a multiple of %" PRIu32
                           ", the block of the head's type %s",
                           l->width, type->block_elems, type->name);
    if (!l->by_path && l->n_vocab % type->bundle_rows)
        return status_fail(why, STATUS_FORMAT,
                           "the vocabulary is %" PRIu64 "; expected a multiple of the %" PRIu32
                           " rows that the head's type %s stores together",
                           l->n_vocab, type->bundle_rows, type->name);
    enum status status = find_bias_bytes(&out->bias_bytes, l, why);
    if (status)
        return status;
    struct sum sum = {EVAL_COMPACT_HEADER_BYTES, false};
    sum.failed |= !gguf_row_bytes(type, l->width, &out->head_row_bytes);
    out->tokens = add_part(&sum, l->n_tokens, sizeof(int32_t));
    out->lengths = add_part(&sum, l->n_tokens, sizeof(uint32_t));
    out->description = add_part(&sum, l->n_description, 1);
    out->path = add_part(&sum, l->n_path, 1);
    out->bias = add_part(&sum, out->bias_bytes, 1);
    out->head = add_part(&sum, l->by_path ? 0 : l->n_vocab, out->head_row_bytes);
    out->head_bytes = sum.at - out->head;
    out->files = add_part(&sum, l->n_files, sizeof(struct eval_compact_text));
    out->documents = add_part(&sum, l->n_documents, sizeof(struct eval_compact_document));
    out->names = add_part(&sum, l->n_names, 1);
    out->scored = add_part(&sum, l->n_documents ? l->n_tokens : 0, 1);
    out->documents_bytes = l->n_documents ? sum.at - out->files : 0;
    out->checks = add_part(&sum, l->n_windows, EVAL_COMPACT_CHECK_BYTES);
    out->row_bytes = eval_compact_row_bytes(l->kind, l->width);
    if (!l->n_documents)
        sum.failed |= __builtin_mul_overflow(out->row_bytes, l->n_scored, &out->window_bytes);
    out->rows = l->n_documents ? add_part(&sum, l->n_scored, out->row_bytes)
                               : add_part(&sum, l->n_windows, out->window_bytes);
    out->end = sum.at;
    if (sum.failed)
        return status_fail(why, STATUS_FORMAT,
                           "%" PRIu64 " windows of %" PRIu64 " rows of %" PRIu64
                           " elements are more than a file can hold",
                           l->n_windows, l->n_scored, l->width);
    return STATUS_OK;
}

enum status eval_compact_sha256(uint8_t sha256[BASE_SHA256_BYTES], const void *bytes,
                                size_t n_bytes, struct status_why *why)
{
    struct base_digest *digest = base_digest_open();
    base_digest_add(digest, bytes, n_bytes);
    return base_digest_close_bytes(digest, sha256, why);
}

enum status eval_compact_header_seal(struct eval_compact_layout *l, struct status_why *why)
{
    memcpy(l->magic, EVAL_COMPACT_MAGIC, sizeof l->magic);
    l->version = l->n_documents ? EVAL_COMPACT_VERSION : l->has_bias ? 3 : l->soft_cap > 0 ? 2 : 1;
    return eval_compact_sha256(l->check, l, CHECKED_BYTES, why);
}

/** Magic, version, checksum: that the fields mean what they should. */
static enum status take_header(struct eval_compact_layout *l, const uint8_t *data, uint64_t n_bytes,
                               struct status_why *why)
{
    if (n_bytes < sizeof l->magic || memcmp(data, EVAL_COMPACT_MAGIC, sizeof l->magic) != 0)
        return status_fail(why, STATUS_FORMAT,
                           "is not a base file of assay: it does not begin with "
                           "\"" EVAL_COMPACT_MAGIC "\"");
    if (n_bytes < sizeof *l)
        return status_fail(why, STATUS_FORMAT,
                           "has %" PRIu64 " bytes; expected at least the %d of the header", n_bytes,
                           (int)EVAL_COMPACT_HEADER_BYTES);
    memcpy(l, data, sizeof *l);
    if (l->version < 1 || l->version > EVAL_COMPACT_VERSION)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "is a base file of version %" PRIu32 "; expected 1 to %d", l->version,
                           (int)EVAL_COMPACT_VERSION);
    uint8_t check[BASE_SHA256_BYTES];
    enum status status = eval_compact_sha256(check, l, CHECKED_BYTES, why);
    if (!status && memcmp(check, l->check, sizeof check) != 0)
        status = status_fail(why, STATUS_FORMAT,
                             "the header does not match its checksum: the file is damaged");
    return status;
}

/** A field and what it may be; with the name that a sentence gives it. */
struct field {
    const char *name;
    uint64_t value, least, most;
};

static enum status check_fields(const struct field *fields, size_t n, struct status_why *why)
{
    for (size_t i = 0; i < n; i++)
        if (fields[i].value < fields[i].least || fields[i].value > fields[i].most)
            return status_fail(why, STATUS_FORMAT,
                               "%s is %" PRIu64 "; expected %" PRIu64 " to %" PRIu64,
                               fields[i].name, fields[i].value, fields[i].least, fields[i].most);
    return STATUS_OK;
}

/** Bytes that a later version may use. */
static enum status check_zeros(const struct eval_compact_layout *l, const uint8_t *zeros, size_t n,
                               struct status_why *why)
{
    for (size_t i = 0; i < n; i++)
        if (zeros[i])
            return status_fail(why, STATUS_FORMAT, "byte %zu of the header is %u; expected 0",
                               (size_t)(zeros - (const uint8_t *)l) + i, zeros[i]);
    return STATUS_OK;
}

/** The logits' scale and soft cap, and BOS. */
static enum status check_numbers(const struct eval_compact_layout *l, struct status_why *why)
{
    if (!isfinite(l->head_scale) || l->head_scale == 0)
        return status_fail(why, STATUS_FORMAT,
                           "the scale of the logits is %g; expected a finite number that is not 0",
                           (double)l->head_scale);
    if (l->version == 1 && l->soft_cap != 0)
        return status_fail(why, STATUS_FORMAT,
                           "the soft cap of the logits is %g; expected 0, as version 1 has none",
                           (double)l->soft_cap);
    if (!isfinite(l->soft_cap) || l->soft_cap < 0)
        return status_fail(why, STATUS_FORMAT,
                           "the soft cap of the logits is %g; expected a positive number, or 0 for "
                           "none",
                           (double)l->soft_cap);
    if (l->bos < -1 || (l->bos >= 0 && (uint64_t)l->bos >= l->n_vocab))
        return status_fail(why, STATUS_FORMAT,
                           "BOS has the id %" PRId32 "; expected -1 (none) to %" PRIu64, l->bos,
                           l->n_vocab - 1);
    return STATUS_OK;
}

/** The windows against the text, or against the documents, whose own lengths come later. */
static enum status check_windows(const struct eval_compact_layout *l, struct status_why *why)
{
    const uint64_t half = l->n_ctx / 2, most = INT64_MAX / 64;
    const struct field of_text[] = {
        {"the context size", l->n_ctx, 3, INT32_MAX / 2},
        {"the number of tokens", l->n_tokens, l->n_ctx, most},
        {"the number of windows", l->n_windows, 1, l->n_tokens / (l->n_ctx ? l->n_ctx : 1)},
        {"the first scored position", l->first_scored, half, half},
        {"the number of scored positions", l->n_scored, l->n_ctx - 1 - half, l->n_ctx - 1 - half},
    };
    const struct field of_documents[] = {
        {"the context size", l->n_ctx, 3, INT32_MAX / 2},
        {"the number of tokens", l->n_tokens, 2, most},
        {"the number of scored positions", l->n_scored, 1, l->n_tokens - 1},
        {"the number of windows", l->n_windows, 1, l->n_scored},
        {"the first scored position", l->first_scored, 0, 0},
        {"the number of documents", l->n_documents, 1, most},
        {"the number of the documents' files", l->n_files, 1, most},
        {"the number of categories", l->n_categories, 0, l->n_documents},
        {"the length of the names", l->n_names, l->n_files, most},
    };
    if (l->version > 3)
        return check_fields(of_documents, sizeof of_documents / sizeof *of_documents, why);
    enum status status = check_fields(of_text, sizeof of_text / sizeof *of_text, why);
    const uint8_t *begin = (const uint8_t *)&l->n_documents;
    return status ? status : check_zeros(l, begin, (size_t)(l->zeros_2 - begin), why);
}

/** What each field alone may be. */
static enum status check_values(const struct eval_compact_layout *l, struct status_why *why)
{
    const struct field fields[] = {
        {"the kind of the rows", l->kind, EVAL_COMPACT_F32, EVAL_COMPACT_F16},
        {"the width", l->width, 1, MOST_WIDTH},
        {"the number of logits", l->n_vocab, 1, MOST_VOCAB},
        {"the place of the head", l->by_path, 0, 1},
        {"the mark of BOS before the text", l->bos_in_stream, 0, 1},
        {"the length of the description", l->n_description, 0, MOST_DESCRIPTION},
        {"the length of the head's path", l->n_path, l->by_path ? 1 : 0,
         l->by_path ? MOST_PATH : 0},
        {"the mark of a bias", l->has_bias, 0, l->version > 2},
        {"the type of the bias", l->bias_type, 0, l->has_bias ? UINT32_MAX : 0},
    };
    enum status status = check_fields(fields, sizeof fields / sizeof *fields, why);
    if (!status)
        status = check_windows(l, why);
    if (!status)
        status = check_numbers(l, why);
    if (!status && !l->has_bias)
        status = check_zeros(l, l->bias, sizeof l->bias, why);
    return status ? status : check_zeros(l, l->zeros_2, sizeof l->zeros_2, why);
}

enum status eval_compact_header_decode(struct eval_compact_layout *l,
                                       struct eval_compact_offsets *offsets, const uint8_t *data,
                                       uint64_t n_bytes, struct status_why *why)
{
    *l = (struct eval_compact_layout){0};
    enum status status = take_header(l, data, n_bytes, why);
    if (!status && !gguf_type_info(l->head_type))
        status = fail_type("head", l->head_type, why);
    if (!status)
        status = check_values(l, why);
    return status ? status : eval_compact_find_offsets(offsets, l, why);
}
