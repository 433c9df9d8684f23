/**
 * Base-logits files, as llama-perplexity --kl-divergence-base writes and reads them.
 *
 * Little-endian, without padding:
 *
 *     "_logits_" | int32 n_ctx, n_vocab, n_chunks | int32 tokens[n_chunks * n_ctx]
 *     for each chunk (a window of the default protocol), for each of its scored positions
 *     n_ctx/2 .. n_ctx-2 in order: a record of struct kern_recorded (kernels/types.h)
 *
 * The tokens are the text's: a chunk's first one has not given way to BOS. The file
 * has nothing of the model but the size of its vocabulary; docs/bases.md says what the codes
 * lose.
 */
#ifndef EVAL_REFERENCE_LOGITS_FILE_H
#define EVAL_REFERENCE_LOGITS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "gguf/map.h"

/** The three numbers that say where everything lies. Each is above 0 and below 2^31. */
struct eval_logits_shape {
    size_t n_ctx; /* tokens of a chunk, 3 at least: fewer have no scored position */
    size_t n_vocab;
    size_t n_chunks;
};

enum { EVAL_LOGITS_MAGIC_BYTES = 8, EVAL_LOGITS_COUNTS = 3 };
extern const char eval_logits_magic[EVAL_LOGITS_MAGIC_BYTES];

/** Scored positions of a chunk, and the first of them. */
size_t eval_logits_n_scored(const struct eval_logits_shape *shape);
size_t eval_logits_first_scored(const struct eval_logits_shape *shape);
size_t eval_logits_record_bytes(const struct eval_logits_shape *shape);
/** Bytes before the first record, and of the records of a chunk. */
uint64_t eval_logits_head_bytes(const struct eval_logits_shape *shape);
uint64_t eval_logits_chunk_bytes(const struct eval_logits_shape *shape);
/** Bytes of the whole file; UINT64_MAX if that many or more. */
uint64_t eval_logits_file_bytes(const struct eval_logits_shape *shape);

/** A file that is read; all of it stays where it is, in a mapping. */
struct eval_logits_file {
    struct eval_logits_shape shape;
    size_t n_whole;      /* chunks that are there; fewer than n_chunks if it is truncated */
    const int32_t *ids;  /* [n_chunks * n_ctx], each below n_vocab */
    const void *records; /* of the whole chunks, one after the other */
    const char *name;    /* for sentences */
    const void *bytes;   /* the whole file */
    size_t n_bytes;
    struct gguf_map map; /* empty if the bytes are somebody else's */
};

/**
 * Map a file and check all of it but the records, whose values show themselves in the scores
 * (eval/reference/logits_source.h).
 * A file that ends too early is no failure while its tokens are whole: see n_whole.
 * path: borrowed, for sentences.
 * Fails: STATUS_IO, STATUS_FORMAT (another magic; counts out of range; tokens cut off or beyond
 *        the vocabulary; more bytes than the counts say), STATUS_MEMORY.
 * Cost: reads the tokens.
 */
enum status eval_logits_open(struct eval_logits_file *out, const char *path,
                             struct status_why *why);
/** Open bytes in memory (aligned to 4), which must outlive *out. */
enum status eval_logits_view(struct eval_logits_file *out, const char *name, const void *bytes,
                             size_t n_bytes, struct status_why *why);
/** A zero-initialised object is allowed. */
void eval_logits_close(struct eval_logits_file *file);

/**
 * Whether chunks first .. first + n - 1 can be evaluated.
 * Fails: STATUS_USAGE (beyond the file's chunks), STATUS_FORMAT (cut off: the sentence says how
 *        many are whole, and how to evaluate those).
 */
enum status eval_logits_check_chunks(const struct eval_logits_file *file, size_t first, size_t n,
                                     struct status_why *why);

/**
 * Whether both files are of the same tokens in chunks first .. first + n - 1, which `a` has.
 * Fails: STATUS_USAGE (`b` has fewer chunks), STATUS_FORMAT (the first difference is named: tokens
 *        of a chunk, the vocabulary, a token, how deep the codes reach).
 */
enum status eval_logits_check_same(const struct eval_logits_file *a,
                                   const struct eval_logits_file *b, size_t first, size_t n,
                                   struct status_why *why);

/**
 * How far two neighbouring codes are apart, in nats: the largest scale among the first records of
 * the whole chunks. EVAL_LOGITS_MAX_CODE times that is how far the codes reach.
 */
enum { EVAL_LOGITS_MAX_CODE = 65535 };
double eval_logits_step(const struct eval_logits_file *file);

/**
 * How far below the largest log-probability the program that wrote a file let its codes go, which
 * the file does not say: 16 as llama.cpp, 24 as ik_llama.cpp where they go further than 16, or
 * as far as they go.   step: of the file.
 */
double eval_logits_reach(double step);

/** Whether this can be the logarithm of the sum of a record's probabilities, which should be 0. */
bool eval_logits_adds_up(double log_sum, size_t n_vocab);

/**
 * What results name the file by: SHA-256 of everything before the records, then of the first
 * EVAL_LOGITS_ID_PREFIX bytes of each whole chunk's records. Reads little of a large file.
 */
enum { EVAL_LOGITS_ID_PREFIX = 4096 };
enum status eval_logits_id(char hex[BASE_HEX], const struct eval_logits_file *file,
                           struct status_why *why);

#endif
