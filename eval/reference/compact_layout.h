/**
 * The bytes of a compact base: a model's hidden rows, what they were computed from, and the head
 * that turns them into logits. docs/base-file.md has the layout for readers of other programs.
 *
 *     header | tokens | lengths | description | path | bias | head | documents | checks | rows
 *
 * Everything is little-endian; each part begins at a multiple of 64 bytes, with zeros before it.
 * All offsets follow from the header, and the windows of documents from their lengths and from
 * which tokens are scored.
 */
#ifndef EVAL_REFERENCE_COMPACT_LAYOUT_H
#define EVAL_REFERENCE_COMPACT_LAYOUT_H

#include <assert.h>

#include "base/content/written.h"
#include "base/digest.h"
#include "eval/reference/compact_rows.h"
#include "gguf/type.h"

#define EVAL_COMPACT_MAGIC BASE_COMPACT_MAGIC
enum {
    EVAL_COMPACT_VERSION = 4, /* of documents; 3: of a head with a bias; 2: of one with a soft cap
                                 alone; else 1 */
    EVAL_COMPACT_HEADER_BYTES = 512,
    EVAL_COMPACT_CHECK_BYTES = 64, /* of a window's check */
    EVAL_COMPACT_ALIGN = 64
};

/** The header, as it lies in the file. Bytes without a name are 0. */
struct eval_compact_layout {
    char magic[8];
    uint32_t version;
    uint32_t kind;    /* of the rows: enum eval_compact_kind */
    uint64_t width;   /* K: elements of a row */
    uint64_t n_vocab; /* V: rows of the head */
    uint32_t by_path; /* 1: the head is in the model's file, not in this one */
    uint32_t head_type;
    float head_scale;       /* multiplies every logit; 1 where there is none */
    int32_t bos;            /* BOS of each window, -1: none */
    uint32_t bos_in_stream; /* 1: the first token was put in front of the text */
    float soft_cap;         /* of the logits; 0: none, and always in version 1 */
    /* As the default protocol has them. With documents first_scored is 0, and n_scored counts all
     * windows. */
    uint64_t n_ctx, first_scored, n_scored, n_windows;
    uint64_t n_tokens;                 /* of the whole text, of all documents */
    uint64_t n_description, n_path;    /* bytes */
    uint8_t tokens[BASE_SHA256_BYTES]; /* SHA-256 of each part, and of ... */
    uint8_t lengths[BASE_SHA256_BYTES];
    uint8_t description[BASE_SHA256_BYTES];
    uint8_t path[BASE_SHA256_BYTES];
    uint8_t head[BASE_SHA256_BYTES];  /* also where it is elsewhere */
    uint8_t vocab[BASE_SHA256_BYTES]; /* ... what eval_vocab_id and gguf_model_id cover */
    uint8_t model[BASE_SHA256_BYTES];
    uint32_t has_bias; /* 1: the head has one, which is in this file; 0 before version 3 */
    uint32_t bias_type;
    uint8_t bias[BASE_SHA256_BYTES]; /* 0 where there is none */
    /* What documents it is of; 0 before version 4: it is one text. */
    uint64_t n_documents, n_files, n_categories;
    uint64_t n_names; /* bytes */
    uint8_t documents[BASE_SHA256_BYTES];
    uint8_t zeros_2[40];
    uint8_t check[BASE_SHA256_BYTES]; /* SHA-256 of all bytes before it */
};
static_assert(sizeof(struct eval_compact_layout) == EVAL_COMPACT_HEADER_BYTES, "without gaps");

/** Where things are: offsets and sizes in bytes. */
struct eval_compact_offsets {
    uint64_t tokens, lengths, description, path, bias, head, checks, rows, end;
    uint64_t files, documents, names,
        scored;                       /* the parts of `documents`, which begins with files */
    uint64_t row_bytes, window_bytes; /* of rows; of those of a window, 0 of documents */
    uint64_t bias_bytes, head_row_bytes, head_bytes;
    uint64_t documents_bytes; /* of all four parts, with the zeros between them */
};

/**
 * Compute the offsets. Fails: STATUS_FORMAT (a head or a bias that its type cannot have, a file of
 * more than 2^63 bytes), STATUS_UNSUPPORTED (type).
 */
enum status eval_compact_find_offsets(struct eval_compact_offsets *out,
                                      const struct eval_compact_layout *layout,
                                      struct status_why *why);

/** SHA-256 of bytes in memory. Fails: STATUS_MEMORY. */
enum status eval_compact_sha256(uint8_t sha256[BASE_SHA256_BYTES], const void *bytes,
                                size_t n_bytes, struct status_why *why);

/** Fill in magic, version and checksum of a header. Fails: STATUS_MEMORY. */
enum status eval_compact_header_seal(struct eval_compact_layout *layout, struct status_why *why);

/**
 * Read and check a header and compute the offsets.
 * data: the beginning of the file; n_bytes: of the whole file. That it is whole is not checked.
 * Fails: STATUS_FORMAT (the sentence names the field), STATUS_UNSUPPORTED (version, type).
 */
enum status eval_compact_header_decode(struct eval_compact_layout *layout,
                                       struct eval_compact_offsets *offsets, const uint8_t *data,
                                       uint64_t n_bytes, struct status_why *why);

/** A file of documents, as it lies in the file. */
struct eval_compact_text {
    uint8_t sha256[BASE_SHA256_BYTES]; /* of its bytes */
    uint64_t n_bytes;
};
static_assert(sizeof(struct eval_compact_text) == 40, "without gaps");

/** A document in a file. Its tokens follow those of the document before it. */
struct eval_compact_document {
    uint64_t n_tokens;
    uint64_t line; /* of its file, from 1; 0: all of it */
    uint32_t file;
    int32_t category; /* -1: none */
    uint32_t has_id;  /* 1: it has a name */
    uint32_t zero;
};
static_assert(sizeof(struct eval_compact_document) == 32, "without gaps");

/** A window's check, as it lies in the file. */
struct eval_compact_check {
    struct eval_compact_error error; /* of its rows */
    uint64_t window;
    uint8_t sha256[BASE_SHA256_BYTES]; /* of its rows, then of the fields above */
};
static_assert(sizeof(struct eval_compact_check) == EVAL_COMPACT_CHECK_BYTES, "without gaps");

/** The bytes of a check that its SHA-256 covers, after the rows. */
enum { EVAL_COMPACT_CHECK_COVERED = EVAL_COMPACT_CHECK_BYTES - BASE_SHA256_BYTES };

#endif
