/**
 * Reading result documents back: those that assay wrote, or that someone says it wrote.
 *
 * A document is taken as hostile. Each look-up checks presence and type, and its failure says
 * which file, which field, what was found and what was expected. The document keeps the first
 * failure.
 */
#ifndef CLI_RESULTS_DOCUMENT_H
#define CLI_RESULTS_DOCUMENT_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/text/string.h"
#include "cli/options/common.h"

/** Results of evaluations, and what a report shows beside them. */
enum cli_document_kind {
    CLI_DOCUMENT_PERPLEXITY,
    CLI_DOCUMENT_TASKS,
    CLI_DOCUMENT_KLD,
    CLI_DOCUMENT_SWEEP
};
#define CLI_SWEPT_SCHEMA "assay.sweep/1"

/** An open document. Zero-initialise; release with cli_document_free. */
struct cli_document {
    const char *file; /* its name, for errors; borrowed */
    cJSON *root;
    enum cli_document_kind kind;
    bool is_other;      /* whole JSON, but no result of an evaluation; it is closed */
    enum status status; /* the first look-up that failed, and why */
    struct status_why why;
};

/**
 * Parse a document. file: its name, borrowed.
 * Fails: STATUS_FORMAT (no JSON: the byte is named; no result document or another schema:
 *        is_other), STATUS_UNSUPPORTED (another version), STATUS_MEMORY.
 */
enum status cli_document_parse(struct cli_document *out, const char *file, const char *bytes,
                               size_t n_bytes, struct status_why *why);
/** The same from a file, or "-" for standard input. Fails: also as eval_text_read_whole. */
enum status cli_document_read(struct cli_document *out, const char *file, struct status_why *why);

/**
 * The same with a document of one of these schemas, blanks between them, which need not be results.
 * sha256: receives the digest of the file's bytes; NULL: it is not wanted.
 */
enum status cli_document_parse_as(struct cli_document *out, const char *file,
                                  struct base_string text, const char *schema,
                                  struct status_why *why);
enum status cli_document_read_as(struct cli_document *out, const char *file, const char *schema,
                                 char sha256[BASE_HEX], struct status_why *why);
void cli_document_free(struct cli_document *document);

/** The schema's name of a kind, as documents have it. */
const char *cli_document_schema(enum cli_document_kind kind);

/**
 * The first failure of the look-ups in a document so far. They go on after a failure, so that code
 * that reads many fields asks once, before it uses them.
 */
enum status cli_document_status(const struct cli_document *document, struct status_why *why);

/** A value inside a document, and what leads to it: "candidates[2].kld". */
struct cli_field {
    struct cli_document *document;
    const cJSON *value;
    size_t index; /* in its list, where cli_field_next found it */
    char name[96];
};

/** The document itself. */
struct cli_field cli_document_root(struct cli_document *document);

/**
 * Look up `path`, members with dots between them, below a field. Optional values are looked up
 * by cli_field_find, which returns false where a member is missing, or null.
 * Fails: STATUS_FORMAT (a member that is missing, or below something that is no object): the value
 * is NULL.
 */
struct cli_field cli_field_at(const struct cli_field *from, const char *path);
bool cli_field_find(struct cli_field *out, const struct cli_field *from, const char *path);

/**
 * Typed look-up of a path. Fails: as cli_field_at; STATUS_FORMAT (another type, a count that is
 * no whole number from 0 to 2^53).
 * real: null, which stands for what is not finite, is NaN; so is a failure.
 * count: a failure is 0.   text: points into the document; a failure is "".
 */
double cli_field_real(const struct cli_field *from, const char *path);
size_t cli_field_count(const struct cli_field *from, const char *path);
const char *cli_field_text(const struct cli_field *from, const char *path);
/** The file name in an object about a model; "-" where the document is older than that member. */
const char *cli_model_file_in(const struct cli_field *model);
/** What such an object says that keys and values were rounded to, as cli_kv_label() has it. */
const char *cli_model_kv_in(char out[CLI_KV_LABEL], const struct cli_field *model);
/** A list; n: its elements, 0 after a failure. */
struct cli_field cli_field_list(size_t *n, const struct cli_field *from, const char *path);

/** Step through a list: item->value is NULL before the first. False behind the last. */
bool cli_field_next(const struct cli_field *list, struct cli_field *item);

/**
 * Two documents must have the same values at all of `paths` (separated by single blanks); objects
 * and lists are compared whole, but for the members of `but` (names, the same way, or NULL).
 * Fails: STATUS_USAGE, naming the first difference and both values; as cli_field_at.
 */
enum status cli_fields_equal(const struct cli_field *a, const struct cli_field *b,
                             const char *paths, const char *but, struct status_why *why);

/** Of a divergence: what its base is recognised by, the model's id or that of a file of rows. */
struct cli_field cli_base_id(const struct cli_field *root);

/** Two values must be the same. Fails: as cli_fields_equal. */
enum status cli_values_equal(const struct cli_field *a, const struct cli_field *b,
                             struct status_why *why);

/**
 * The text's hash must be the same, if both results have one: `text` is null where the tokens
 * come from a base's file. And so where the texts are documents: how long each is, its category and
 * which of its tokens are scored. Fails: as cli_fields_equal.
 */
enum status cli_fields_same_text(const struct cli_field *a, const struct cli_field *b,
                                 struct status_why *why);

#endif
