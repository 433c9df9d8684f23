#include "eval/reference/compact_layout.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "gguf/cursor.h"

/** Limits that no model comes near; they keep products of sizes from overflowing. */
enum {
    MOST_WIDTH = 1 << 24,
    MOST_VOCAB = 1 << 28,
    MOST_DESCRIPTION = 1 << 24,
    MOST_PATH = 1 << 16
};

/** Offsets of the header's fields. */
enum {
    AT_MAGIC = 0,
    AT_VERSION = 8,
    AT_KIND = 12,
    AT_WIDTH = 16,
    AT_VOCAB = 24,
    AT_BY_PATH = 32,
    AT_HEAD_TYPE = 36,
    AT_HEAD_SCALE = 40,
    AT_BOS = 44,
    AT_BOS_IN_STREAM = 48,
    AT_CTX = 56, /* u64 from here on */
    AT_FIRST_SCORED = 64,
    AT_SCORED = 72,
    AT_WINDOWS = 80,
    AT_TOKENS = 88,
    AT_DESCRIPTION = 96,
    AT_PATH = 104,
    AT_HASHES = 112, /* seven, in the order of the struct */
    AT_NOTHING = AT_HASHES + 7 * BASE_SHA256_BYTES,
    AT_CHECK = EVAL_COMPACT_HEADER_BYTES - BASE_SHA256_BYTES
};

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

enum status eval_compact_place(struct eval_compact_places *out, const struct eval_compact_layout *l,
                               struct status_why *why)
{
    *out = (struct eval_compact_places){0};
    const struct gguf_type_info *type = gguf_type_info(l->head_type);
    if (!type)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "the head's type is %u (%s), which cannot be decoded",
                           (unsigned)l->head_type, gguf_type_name(l->head_type));
    if (l->width % type->block_elems)
        return status_fail(why, STATUS_FORMAT,
                           "the width is %" PRIu64 "; expected a multiple of %" PRIu32
                           ", the block of the head's type %s",
                           l->width, type->block_elems, type->name);
    struct sum sum = {EVAL_COMPACT_HEADER_BYTES, false};
    sum.failed |= __builtin_mul_overflow(l->width / type->block_elems, type->block_bytes,
                                         &out->head_row_bytes);
    out->tokens = add_part(&sum, l->n_tokens, sizeof(int32_t));
    out->lengths = add_part(&sum, l->n_tokens, sizeof(uint32_t));
    out->description = add_part(&sum, l->n_description, 1);
    out->path = add_part(&sum, l->n_path, 1);
    out->head = add_part(&sum, l->by_path ? 0 : l->n_vocab, out->head_row_bytes);
    out->head_bytes = sum.at - out->head;
    out->checks = add_part(&sum, l->n_windows, EVAL_COMPACT_CHECK_BYTES);
    out->row_bytes = eval_compact_row_bytes(l->kind, l->width);
    sum.failed |= __builtin_mul_overflow(out->row_bytes, l->n_scored, &out->window_bytes);
    out->rows = add_part(&sum, l->n_windows, out->window_bytes);
    out->end = sum.at;
    if (sum.failed)
        return status_fail(why, STATUS_FORMAT,
                           "%" PRIu64 " windows of %" PRIu64 " rows of %" PRIu64
                           " elements are more than a file can hold",
                           l->n_windows, l->n_scored, l->width);
    return STATUS_OK;
}

static void store_u32(uint8_t *header, size_t at, uint32_t value)
{
    memcpy(header + at, &value, sizeof value);
}

static void store_u64(uint8_t *header, size_t at, uint64_t value)
{
    memcpy(header + at, &value, sizeof value);
}

static enum status header_check(uint8_t check[BASE_SHA256_BYTES], const uint8_t *header,
                                struct status_why *why)
{
    struct base_digest *digest = base_digest_open();
    base_digest_add(digest, header, AT_CHECK);
    return base_digest_close_bytes(digest, check, why);
}

enum status eval_compact_header_encode(uint8_t header[EVAL_COMPACT_HEADER_BYTES],
                                       const struct eval_compact_layout *l, struct status_why *why)
{
    const uint8_t *const hashes[] = {l->tokens, l->lengths, l->description, l->path,
                                     l->head,   l->vocab,   l->model};
    memset(header, 0, EVAL_COMPACT_HEADER_BYTES);
    memcpy(header + AT_MAGIC, EVAL_COMPACT_MAGIC, 8);
    store_u32(header, AT_VERSION, EVAL_COMPACT_VERSION);
    store_u32(header, AT_KIND, l->kind);
    store_u64(header, AT_WIDTH, l->width);
    store_u64(header, AT_VOCAB, l->n_vocab);
    store_u32(header, AT_BY_PATH, l->by_path);
    store_u32(header, AT_HEAD_TYPE, l->head_type);
    memcpy(header + AT_HEAD_SCALE, &l->head_scale, sizeof l->head_scale);
    store_u32(header, AT_BOS, (uint32_t)l->bos);
    store_u32(header, AT_BOS_IN_STREAM, l->bos_in_stream);
    store_u64(header, AT_CTX, l->n_ctx);
    store_u64(header, AT_FIRST_SCORED, l->first_scored);
    store_u64(header, AT_SCORED, l->n_scored);
    store_u64(header, AT_WINDOWS, l->n_windows);
    store_u64(header, AT_TOKENS, l->n_tokens);
    store_u64(header, AT_DESCRIPTION, l->n_description);
    store_u64(header, AT_PATH, l->n_path);
    for (size_t i = 0; i < sizeof hashes / sizeof *hashes; i++)
        memcpy(header + AT_HASHES + i * BASE_SHA256_BYTES, hashes[i], BASE_SHA256_BYTES);
    return header_check(header + AT_CHECK, header, why);
}

/** Magic, version, checksum: that the fields mean what they should. */
static enum status check_header(const uint8_t *header, uint64_t n_bytes, struct status_why *why)
{
    if (n_bytes < 8 || memcmp(header + AT_MAGIC, EVAL_COMPACT_MAGIC, 8) != 0)
        return status_fail(why, STATUS_FORMAT,
                           "is no base file of assay: it does not begin with "
                           "\"" EVAL_COMPACT_MAGIC "\"");
    if (n_bytes < EVAL_COMPACT_HEADER_BYTES)
        return status_fail(why, STATUS_FORMAT,
                           "has %" PRIu64 " bytes; expected at least the %d of the header", n_bytes,
                           (int)EVAL_COMPACT_HEADER_BYTES);
    uint32_t version = gguf_load_u32(header + AT_VERSION);
    if (version != EVAL_COMPACT_VERSION)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "is a base file of version %" PRIu32 "; expected %d", version,
                           (int)EVAL_COMPACT_VERSION);
    uint8_t check[BASE_SHA256_BYTES];
    enum status status = header_check(check, header, why);
    if (status == STATUS_OK && memcmp(check, header + AT_CHECK, sizeof check) != 0)
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
static enum status check_zeros(const uint8_t *header, size_t from, size_t to,
                               struct status_why *why)
{
    for (size_t i = from; i < to; i++)
        if (header[i])
            return status_fail(why, STATUS_FORMAT, "byte %zu of the header is %u; expected 0", i,
                               header[i]);
    return STATUS_OK;
}

/** The logits' scale and BOS. */
static enum status check_numbers(const struct eval_compact_layout *l, struct status_why *why)
{
    if (!isfinite(l->head_scale) || l->head_scale == 0)
        return status_fail(why, STATUS_FORMAT,
                           "the scale of the logits is %g; expected a finite number that is not 0",
                           (double)l->head_scale);
    if (l->bos < -1 || (l->bos >= 0 && (uint64_t)l->bos >= l->n_vocab))
        return status_fail(why, STATUS_FORMAT,
                           "BOS has the id %" PRId32 "; expected -1 (none) to %" PRIu64, l->bos,
                           l->n_vocab - 1);
    return STATUS_OK;
}

/** What each field alone may be, and the windows against the text. */
static enum status check_values(const uint8_t *header, const struct eval_compact_layout *l,
                                struct status_why *why)
{
    const struct field fields[] = {
        {"the kind of the rows", gguf_load_u32(header + AT_KIND), EVAL_COMPACT_F32,
         EVAL_COMPACT_F16},
        {"the width", l->width, 1, MOST_WIDTH},
        {"the number of logits", l->n_vocab, 1, MOST_VOCAB},
        {"the place of the head", gguf_load_u32(header + AT_BY_PATH), 0, 1},
        {"the mark of BOS before the text", gguf_load_u32(header + AT_BOS_IN_STREAM), 0, 1},
        {"the context size", l->n_ctx, 3, INT32_MAX / 2},
        {"the number of tokens", l->n_tokens, l->n_ctx, INT64_MAX / 64},
        {"the number of windows", l->n_windows, 1, l->n_tokens / (l->n_ctx ? l->n_ctx : 1)},
        {"the first scored position", l->first_scored, l->n_ctx / 2, l->n_ctx / 2},
        {"the number of scored positions", l->n_scored, l->n_ctx - 1 - l->n_ctx / 2,
         l->n_ctx - 1 - l->n_ctx / 2},
        {"the length of the description", l->n_description, 0, MOST_DESCRIPTION},
        {"the length of the head's path", l->n_path, l->by_path ? 1 : 0,
         l->by_path ? MOST_PATH : 0},
    };
    enum status status = check_fields(fields, sizeof fields / sizeof *fields, why);
    if (status == STATUS_OK)
        status = check_numbers(l, why);
    if (status == STATUS_OK)
        status = check_zeros(header, AT_BOS_IN_STREAM + 4, AT_CTX, why);
    return status == STATUS_OK ? check_zeros(header, AT_NOTHING, AT_CHECK, why) : status;
}

enum status eval_compact_header_decode(struct eval_compact_layout *l,
                                       struct eval_compact_places *places, const uint8_t *data,
                                       uint64_t n_bytes, struct status_why *why)
{
    *l = (struct eval_compact_layout){0};
    enum status status = check_header(data, n_bytes, why);
    if (status != STATUS_OK)
        return status;
    *l = (struct eval_compact_layout){
        .kind = gguf_load_u32(data + AT_KIND) ? EVAL_COMPACT_F16 : EVAL_COMPACT_F32,
        .width = gguf_load_u64(data + AT_WIDTH),
        .n_vocab = gguf_load_u64(data + AT_VOCAB),
        .by_path = gguf_load_u32(data + AT_BY_PATH),
        .bos = (int32_t)gguf_load_u32(data + AT_BOS),
        .bos_in_stream = gguf_load_u32(data + AT_BOS_IN_STREAM),
        .n_ctx = gguf_load_u64(data + AT_CTX),
        .first_scored = gguf_load_u64(data + AT_FIRST_SCORED),
        .n_scored = gguf_load_u64(data + AT_SCORED),
        .n_windows = gguf_load_u64(data + AT_WINDOWS),
        .n_tokens = gguf_load_u64(data + AT_TOKENS),
        .n_description = gguf_load_u64(data + AT_DESCRIPTION),
        .n_path = gguf_load_u64(data + AT_PATH),
    };
    uint8_t *const hashes[] = {l->tokens, l->lengths, l->description, l->path,
                               l->head,   l->vocab,   l->model};
    for (size_t i = 0; i < sizeof hashes / sizeof *hashes; i++)
        memcpy(hashes[i], data + AT_HASHES + i * BASE_SHA256_BYTES, BASE_SHA256_BYTES);
    memcpy(&l->head_scale, data + AT_HEAD_SCALE, sizeof l->head_scale);
    uint32_t type = gguf_load_u32(data + AT_HEAD_TYPE);
    if (!gguf_type_info(type))
        return status_fail(why, STATUS_UNSUPPORTED,
                           "the head's type is %" PRIu32 " (%s), which cannot be decoded", type,
                           gguf_type_name(type));
    l->head_type = gguf_type_info(type)->type;
    status = check_values(data, l, why);
    return status == STATUS_OK ? eval_compact_place(places, l, why) : status;
}

void eval_compact_check_encode(uint8_t bytes[EVAL_COMPACT_CHECK_BYTES],
                               const struct eval_compact_check *check)
{
    const double sums[] = {check->error.lost, check->error.squares, check->error.largest};
    memcpy(bytes, sums, sizeof sums);
    memcpy(bytes + sizeof sums, &check->window, sizeof check->window);
    memcpy(bytes + EVAL_COMPACT_CHECK_COVERED, check->sha256, BASE_SHA256_BYTES);
}

void eval_compact_check_decode(struct eval_compact_check *check,
                               const uint8_t bytes[EVAL_COMPACT_CHECK_BYTES])
{
    double sums[3];
    memcpy(sums, bytes, sizeof sums);
    check->error = (struct eval_compact_error){sums[0], sums[1], sums[2]};
    check->window = gguf_load_u64(bytes + sizeof sums);
    memcpy(check->sha256, bytes + EVAL_COMPACT_CHECK_COVERED, BASE_SHA256_BYTES);
}
