/** A compact base that is read. eval/reference/compact_layout.h has the bytes. */
#ifndef EVAL_REFERENCE_COMPACT_FILE_H
#define EVAL_REFERENCE_COMPACT_FILE_H

#include "eval/input/documents.h"
#include "eval/reference/compact_layout.h"
#include "gguf/map.h"
#include "kernels/types.h"
#include "model/model.h"

/** Everything stays where it is, in a mapping. Zero-initialise; release with the close below. */
struct eval_compact_file {
    struct eval_compact_layout layout;
    struct eval_compact_offsets offsets;
    const char *name; /* for sentences */
    const uint8_t *bytes;
    size_t n_bytes;
    const char *description; /* layout.n_description bytes of JSON, checked for nothing */
    char *head_path;         /* owned; NULL where the head is in the file */
    struct kern_weight bias; /* of the head; data NULL: none */
    struct kern_weight head; /* data NULL until eval_compact_take_head, where it is by path */
    const struct gguf_file *head_file; /* the model that eval_compact_take_head was given */
    struct eval_plan plan;             /* of documents: their windows; else 0 */
    bool *checked;                     /* [n_windows]: rows that match their checksum */
    struct gguf_map map;               /* empty if the bytes are somebody else's */
};

/**
 * Map a file and check all of it but the rows, which are checked as they are used.
 * path: borrowed, for sentences.
 * Fails: STATUS_IO, STATUS_FORMAT (a field out of range, a part that does not match its
 *        checksum, a token beyond the vocabulary, documents that are not the tokens', a file that
 *        ends early: the sentence says how many windows are whole), STATUS_UNSUPPORTED (version,
 * type of the head), STATUS_MEMORY. Cost: reads tokens and head.
 */
enum status eval_compact_open(struct eval_compact_file *out, const char *path,
                              struct status_why *why);
/** Open bytes in memory (aligned to 64), which must outlive *out. */
enum status eval_compact_view(struct eval_compact_file *out, const char *name, const void *bytes,
                              size_t n_bytes, struct status_why *why);
/** A zero-initialised object is allowed. */
void eval_compact_close(struct eval_compact_file *file);

/** The tokens, copied. *out: the caller's, by eval_stream_free. Fails: STATUS_MEMORY. */
enum status eval_compact_stream(struct eval_stream *out, const struct eval_compact_file *file,
                                struct status_why *why);

/**
 * The documents, if layout.n_documents, copied; their stream is the tokens. What is known of
 * conversations, and of the bytes of the files, is not in it.
 * *out: the caller's, by eval_documents_free. Fails: STATUS_FORMAT, STATUS_MEMORY.
 */
enum status eval_compact_documents(struct eval_documents *out, const struct eval_compact_file *file,
                                   struct status_why *why);

/**
 * What results name the file by: SHA-256 over the header and the checks, which cover the rest.
 * Fails: STATUS_MEMORY.
 */
enum status eval_compact_id(char hex[BASE_HEX], const struct eval_compact_file *file,
                            struct status_why *why);

/**
 * Refuse a model whose vocabulary is not the base's: see eval_check_same_vocab. n_common: where one
 * may have more tokens (eval_check_common_vocab), receives how many both have, else NULL; what the
 * base has more must be fillers, since the file has no texts.
 * Fails: STATUS_FORMAT, STATUS_MEMORY.
 */
enum status eval_compact_check_vocab(const struct eval_compact_file *file,
                                     const struct model *model, size_t *n_common,
                                     struct status_why *why);

/**
 * Take the head from the model that file->head_path leads to; it must outlive the file.
 * model_id: of that model, by gguf_model_id.
 * Fails: STATUS_FORMAT (another model, another head), STATUS_MEMORY.
 */
enum status eval_compact_take_head(struct eval_compact_file *file, const struct model *model,
                                   const char model_id[BASE_HEX], struct status_why *why);

/** The check of window w, as the file has it. */
struct eval_compact_check eval_compact_check_of(const struct eval_compact_file *file, size_t w);

/** The first row of window w, which may be n_windows; and the window that a row is of. */
uint64_t eval_compact_first_row(const struct eval_compact_file *file, size_t w);
size_t eval_compact_window_of(const struct eval_compact_file *file, uint64_t row);
/** Bytes of the rows of the largest window, or a bound of them. */
double eval_compact_window_bytes(const struct eval_compact_file *file);

/** Stored rows, from row `row` of the file on. */
const uint8_t *eval_compact_rows_at(const struct eval_compact_file *file, uint64_t row);

/**
 * Compare window w with its checksum, once. Fails: STATUS_FORMAT, STATUS_MEMORY.
 * Cost: reads the window the first time.
 */
enum status eval_compact_check_window(struct eval_compact_file *file, size_t w,
                                      struct status_why *why);

#endif
