#include "compact_fixture.h"

#include "eval/reference/compact_documents.h"

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
    if (l.n_documents)
        sha256(l.documents, data + at.files, at.documents_bytes, NULL, 0);
    seal_header(data, &l);
}

/** plan: of documents, or NULL. */
static void write_windows(uint8_t *data, const struct eval_compact_layout *l,
                          const struct eval_compact_offsets *at, const struct eval_plan *plan)
{
    float rows[N_CTX * WIDTH];
    for (size_t w = 0, first = 0, n; w < l->n_windows; w++, first += n) {
        n = plan ? eval_plan_n_scored(plan, w) : N_SCORED;
        for (size_t i = 0; i < n * WIDTH; i++)
            rows[i] = (float)((i * 37 + w * 11) % 64) / 16 - 2;
        uint8_t *out = data + at->rows + first * at->row_bytes;
        uint8_t *bytes = data + at->checks + w * EVAL_COMPACT_CHECK_BYTES;
        struct eval_compact_check check = {.window = w};
        eval_compact_rows_encode(l->kind, out, rows, n, WIDTH, &check.error);
        memcpy(bytes, &check, sizeof check);
        sha256(bytes + EVAL_COMPACT_CHECK_COVERED, out, n * at->row_bytes, bytes,
               EVAL_COMPACT_CHECK_COVERED);
    }
}

/** Two files, the second with two documents, one of them empty, and a category; some tokens of the
 * last one are scored, none of its first ten. */
static void add_documents(struct eval_documents *d)
{
    static const struct {
        const char *file, *id, *category;
        size_t n;
    } items[] = {{"a.txt", NULL, "", 5}, {"b.jsonl", "first", "", 0}, {NULL, "b", "prose", 21}};
    uint8_t scored[N_TOKENS];
    int32_t ids[N_TOKENS];
    uint32_t lengths[N_TOKENS];
    for (size_t i = 0, at = 0; i < 3; at += items[i++].n) {
        struct base_text text = {.file_bytes = 100 + i};
        struct eval_document_head head = {
            .line = i,
            .id = {items[i].id, items[i].id ? strlen(items[i].id) : 0},
            .category = {items[i].category, strlen(items[i].category)}};
        for (size_t k = 0; k < items[i].n; k++) {
            ids[k] = (int32_t)((at + k) % N_VOCAB);
            lengths[k] = (uint32_t)((at + k) % 5);
            scored[k] = i == 0 || (k > 9 && k % 3);
        }
        memset(text.sha256, 'a' + (int)i, BASE_HEX - 1);
        if ((items[i].file && eval_documents_begin_file(d, items[i].file, &text, NULL)) ||
            eval_documents_add(
                d, &head, &(struct eval_document_tokens){ids, items[i].n, lengths, scored}, NULL))
            abort();
    }
}

static struct compact_bytes make(enum eval_compact_kind kind, const char *head_path, bool biased,
                                 const struct eval_documents *documents)
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
    struct eval_plan plan = {0};
    if (documents) {
        const struct eval_plan_options options = {.n_ctx = N_CTX, .bos = 1};
        if (eval_plan_make_documents(&plan, &options, documents, NULL))
            abort();
        eval_compact_documents_count(&l, documents);
        l.first_scored = 0;
        l.n_windows = plan.n_windows;
        l.n_scored = documents->n_scored;
    }
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
    if (documents) {
        uint8_t *part;
        if (eval_compact_documents_encode(&part, documents, &at, NULL))
            abort();
        memcpy(out.data + at.files, part, at.documents_bytes);
        free(part);
    }
    write_windows(out.data, &l, &at, documents ? &plan : NULL);
    eval_plan_free(&plan);
    seal_header(out.data, &l);
    compact_seal_parts(out.data, out.n_bytes);
    return out;
}

struct compact_bytes compact_make(enum eval_compact_kind kind, const char *head_path)
{
    return make(kind, head_path, false, NULL);
}

struct compact_bytes compact_make_biased(enum eval_compact_kind kind, const char *head_path)
{
    return make(kind, head_path, true, NULL);
}

struct compact_bytes compact_make_documents(enum eval_compact_kind kind)
{
    struct eval_documents documents = {0};
    add_documents(&documents);
    struct compact_bytes out = make(kind, NULL, true, &documents);
    eval_documents_free(&documents);
    return out;
}
