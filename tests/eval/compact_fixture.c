#include "compact_fixture.h"

#include <stdlib.h>
#include <string.h>

enum { N_CTX = 8, N_SCORED = 3, N_WINDOWS = 3, WIDTH = 32, N_VOCAB = 16, N_TOKENS = 26 };

static void sha256(uint8_t out[BASE_SHA256_BYTES], const void *a, size_t n_a, const void *b,
                   size_t n_b)
{
    struct base_digest *digest = base_digest_open();
    base_digest_add(digest, a, n_a);
    base_digest_add(digest, b, n_b);
    if (base_digest_close_bytes(digest, out, NULL) != STATUS_OK)
        abort();
}

void compact_seal(uint8_t *header)
{
    size_t covered = EVAL_COMPACT_HEADER_BYTES - BASE_SHA256_BYTES;
    sha256(header + covered, header, covered, NULL, 0);
}

static void seal_header(uint8_t *data, struct eval_compact_layout *layout)
{
    if (eval_compact_header_seal(layout, NULL) != STATUS_OK)
        abort();
    memcpy(data, layout, sizeof *layout);
}

void compact_seal_parts(uint8_t *data, size_t n_bytes)
{
    struct eval_compact_layout l;
    struct eval_compact_offsets at;
    compact_seal(data);
    if (eval_compact_header_decode(&l, &at, data, n_bytes, NULL) != STATUS_OK ||
        at.checks > n_bytes)
        return;
    sha256(l.tokens, data + at.tokens, l.n_tokens * 4, NULL, 0);
    sha256(l.lengths, data + at.lengths, l.n_tokens * 4, NULL, 0);
    sha256(l.description, data + at.description, l.n_description, NULL, 0);
    sha256(l.path, data + at.path, l.n_path, NULL, 0);
    if (l.has_bias)
        sha256(l.bias, data + at.bias, at.bias_bytes, NULL, 0);
    if (!l.by_path)
        sha256(l.head, data + at.head, at.head_bytes, NULL, 0);
    seal_header(data, &l);
}

static void write_windows(uint8_t *data, const struct eval_compact_layout *l,
                          const struct eval_compact_offsets *at)
{
    float rows[N_SCORED * WIDTH];
    for (size_t w = 0; w < N_WINDOWS; w++) {
        for (size_t i = 0; i < N_SCORED * WIDTH; i++)
            rows[i] = (float)((i * 37 + w * 11) % 64) / 16 - 2;
        uint8_t *out = data + at->rows + w * at->window_bytes;
        uint8_t *bytes = data + at->checks + w * EVAL_COMPACT_CHECK_BYTES;
        struct eval_compact_check check = {.window = w};
        eval_compact_rows_encode(l->kind, out, rows, N_SCORED, WIDTH, &check.error);
        memcpy(bytes, &check, sizeof check);
        sha256(bytes + EVAL_COMPACT_CHECK_COVERED, out, at->window_bytes, bytes,
               EVAL_COMPACT_CHECK_COVERED);
    }
}

static struct compact_bytes make(enum eval_compact_kind kind, const char *head_path, bool biased)
{
    static const char description[] = "{\"base\":{}}";
    struct eval_compact_layout l = {
        .kind = kind,
        .width = WIDTH,
        .n_vocab = N_VOCAB,
        .by_path = head_path != NULL,
        .head_type = GGUF_TYPE_Q8_0,
        .head_scale = 1,
        .bos = 1,
        .bos_in_stream = true,
        .n_ctx = N_CTX,
        .first_scored = N_CTX / 2,
        .n_scored = N_SCORED,
        .n_windows = N_WINDOWS,
        .n_tokens = N_TOKENS,
        .n_description = sizeof description - 1,
        .n_path = head_path ? strlen(head_path) : 0,
        .has_bias = biased,
        .bias_type = biased ? GGUF_TYPE_F16 : 0,
    };
    struct eval_compact_offsets at;
    if (eval_compact_find_offsets(&at, &l, NULL) != STATUS_OK)
        abort();
    struct compact_bytes out = {.n_bytes = (size_t)at.end};
    out.data = aligned_alloc(EVAL_COMPACT_ALIGN, (out.n_bytes + 63) / 64 * 64);
    if (!out.data)
        abort();
    memset(out.data, 0, out.n_bytes);
    for (uint32_t i = 0; i < N_TOKENS; i++) {
        uint32_t id = i % N_VOCAB, length = i % 5;
        memcpy(out.data + at.tokens + 4 * i, &id, 4);
        memcpy(out.data + at.lengths + 4 * i, &length, 4);
    }
    memcpy(out.data + at.description, description, l.n_description);
    if (head_path)
        memcpy(out.data + at.path, head_path, l.n_path);
    static const uint16_t halves[] = {0,      0x3400, 0x3800, 0x3a00, 0x3c00, 0x3d00,
                                      0x3e00, 0x3f00, 0x4000, 0x4080, 0x4100, 0x4180,
                                      0x4200, 0x4280, 0x4300, 0x4380};
    memcpy(out.data + at.bias, halves, at.bias_bytes);
    for (size_t i = 0; i < at.head_bytes; i++)
        out.data[at.head + i] = (uint8_t)(i * 7 % 60); /* finite scales */
    write_windows(out.data, &l, &at);
    seal_header(out.data, &l);
    compact_seal_parts(out.data, out.n_bytes);
    return out;
}

struct compact_bytes compact_make(enum eval_compact_kind kind, const char *head_path)
{
    return make(kind, head_path, false);
}

struct compact_bytes compact_make_biased(enum eval_compact_kind kind, const char *head_path)
{
    return make(kind, head_path, true);
}
