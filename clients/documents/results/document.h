/**
 * Reading result documents back: those that assay wrote, or that someone says it wrote.
 *
 * A document is taken as hostile: its fields are read with base/json/read.h, which keeps the first
 * failure.
 */
#ifndef DOCUMENTS_RESULTS_DOCUMENT_H
#define DOCUMENTS_RESULTS_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/json/read.h"
#include "base/text/string.h"
#include "clients/documents/results/cache_label.h"

/** Results of evaluations, and, from DOC_SWEEP on, what a report shows beside them: no board.
 * results.c reads a race as a divergence. Rows of llama-bench give speeds to what is on a board. */
enum doc_kind { DOC_PERPLEXITY, DOC_TASKS, DOC_KLD, DOC_SWEEP, DOC_IMATRIX, DOC_RACE, DOC_BENCH };

/** An open document. Zero-initialise; release with doc_free. */
struct doc_document {
    struct base_json_reader json; /* first, for doc_of */
    enum doc_kind kind;
    bool is_other; /* whole JSON, but no result of an evaluation; it is closed */
};

/**
 * Parse a document. file: its name, borrowed. schema: one of these, blanks between them; NULL:
 * those of results. With DOC_BENCH_SCHEMA (bench.h) among them llama-bench's rows are one, too.
 * Fails: STATUS_FORMAT (no JSON: the byte is named; no result document or another schema:
 *        is_other), STATUS_UNSUPPORTED (another version), STATUS_MEMORY.
 */
enum status doc_parse_as(struct doc_document *out, const char *file, struct base_string text,
                         const char *schema, struct status_why *why);
/**
 * The same from a file, or "-" for standard input; the second of results.
 * sha256: receives the digest of the file's bytes; NULL: it is not wanted.
 * Fails: also as base_text_read_whole.
 */
enum status doc_read_as(struct doc_document *out, const char *file, const char *schema,
                        char sha256[BASE_HEX], struct status_why *why);
enum status doc_read(struct doc_document *out, const char *file, struct status_why *why);
void doc_free(struct doc_document *document);

/** The schema's name of a kind, as documents have it. */
const char *doc_schema(enum doc_kind kind);

/** The first failure of the look-ups in a document so far. */
enum status doc_status(const struct doc_document *document, struct status_why *why);
/** The document itself, and the document of a field. */
struct base_field doc_root(struct doc_document *document);
struct doc_document *doc_of(struct base_field field);

/**
 * The standard error at a path that ends in "error" or "se": that of lots (base/moments.h), whose
 * member has lot_ before this, where the document has it.
 */
double doc_error(struct base_field from, const char *path);
/** A count, up to 2^53. */
size_t doc_count(struct base_field from, const char *path);
/** A list; n: its elements, 0 after a failure. */
struct base_field doc_list(size_t *n, struct base_field from, const char *path);
/** The file name in an object about a model; "-" where the document is older than that member. */
const char *doc_model_file_in(struct base_field model);
/** The label in such an object; NULL: it has none. */
const char *doc_model_label_in(struct base_field model);
/** What such an object says that was forced upon the model, as struct cli_model has it in `kv`:
 * " K Q8_0 V Q4_0 unrotated experts 2". */
const char *doc_model_kv_in(char out[DOC_KV_LABEL], struct base_field model);
/**
 * Two documents must have the same values at all of `paths` (separated by single blanks); objects
 * and lists are compared whole, but for the members of `but` (names, the same way, or NULL); a
 * member that is missing is false.
 * Fails: STATUS_USAGE, naming the first difference and both values; as doc_status.
 */
enum status doc_equal(struct base_field a, struct base_field b, const char *paths, const char *but,
                      struct status_why *why);

/** What a divergence's base is recognised by: the model's id or that of a file of rows. */
struct base_field doc_base_id(struct base_field root);

/** Two values must be the same. Fails: as doc_equal. */
enum status doc_values_equal(struct base_field a, struct base_field b, struct status_why *why);

/**
 * The text's hash must be the same, if both results have one: `text` is null where the tokens
 * come from a base's file. And so where the texts are documents: how long each is, its category and
 * which of its tokens are scored. Fails: as doc_equal.
 */
enum status doc_same_text(struct base_field a, struct base_field b, struct status_why *why);

#endif
