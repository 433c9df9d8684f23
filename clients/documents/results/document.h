/**
 * Reading result documents back: those that assay wrote, or that someone says it wrote.
 *
 * A document is taken as hostile. Each look-up checks presence and type, and its failure says
 * which file, which field, what was found and what was expected. The document keeps the first
 * failure.
 */
#ifndef DOCUMENTS_RESULTS_DOCUMENT_H
#define DOCUMENTS_RESULTS_DOCUMENT_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/text/string.h"
#include "clients/documents/results/cache_label.h"

/** Results of evaluations, and, from DOC_SWEEP on, what a report shows beside them: no board. */
enum doc_kind { DOC_PERPLEXITY, DOC_TASKS, DOC_KLD, DOC_SWEEP, DOC_IMATRIX };

/** An open document. Zero-initialise; release with doc_free. */
struct doc_document {
    const char *file; /* its name, for errors; borrowed */
    cJSON *root;
    enum doc_kind kind;
    bool is_other;      /* whole JSON, but no result of an evaluation; it is closed */
    enum status status; /* the first look-up that failed, and why */
    struct status_why why;
};

/**
 * Parse a document. file: its name, borrowed. schema: one of these, blanks between them; NULL:
 * those of results.
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

/**
 * The first failure of the look-ups in a document so far. They go on after a failure, so that code
 * that reads many fields asks once, before it uses them.
 */
enum status doc_status(const struct doc_document *document, struct status_why *why);

/** A value inside a document, and what leads to it: "candidates[2].kld". */
struct doc_field {
    struct doc_document *document;
    const cJSON *value;
    size_t index; /* in its list, where doc_field_next found it */
    char name[96];
};

/** The document itself. */
struct doc_field doc_root(struct doc_document *document);

/**
 * Look up `path`, members with dots between them, below a field. Optional values are looked up
 * by doc_field_find, which returns false where a member is missing, or null.
 * Fails: STATUS_FORMAT (a member that is missing, or below something that is no object): the value
 * is NULL.
 */
struct doc_field doc_field_at(const struct doc_field *from, const char *path);
bool doc_field_find(struct doc_field *out, const struct doc_field *from, const char *path);

/**
 * Typed look-up of a path. Fails: as doc_field_at; STATUS_FORMAT (another type, a count that is
 * no whole number from 0 to 2^53).
 * real: null, which stands for what is not finite, is NaN; so is a failure.
 * count: a failure is 0.   text: points into the document; a failure is "".
 */
double doc_field_real(const struct doc_field *from, const char *path);
/**
 * The standard error at a path that ends in "error" or "se": that of lots (base/moments.h), whose
 * member has lot_ before this, where the document has it.
 */
double doc_field_error(const struct doc_field *from, const char *path);
size_t doc_field_count(const struct doc_field *from, const char *path);
const char *doc_field_text(const struct doc_field *from, const char *path);
/** The file name in an object about a model; "-" where the document is older than that member. */
const char *doc_model_file_in(const struct doc_field *model);
/** The label in such an object; NULL: it has none. */
const char *doc_model_label_in(const struct doc_field *model);
/** What such an object says that was forced upon the model, as struct cli_model has it in `kv`:
 * " K Q8_0 V Q4_0 unrotated experts 2". */
const char *doc_model_kv_in(char out[DOC_KV_LABEL], const struct doc_field *model);
/** A list; n: its elements, 0 after a failure. */
struct doc_field doc_field_list(size_t *n, const struct doc_field *from, const char *path);

/** Step through a list: item->value is NULL before the first. False after the last. */
bool doc_field_next(const struct doc_field *list, struct doc_field *item);

/**
 * Two documents must have the same values at all of `paths` (separated by single blanks); objects
 * and lists are compared whole, but for the members of `but` (names, the same way, or NULL).
 * Fails: STATUS_USAGE, naming the first difference and both values; as doc_field_at.
 */
enum status doc_fields_equal(const struct doc_field *a, const struct doc_field *b,
                             const char *paths, const char *but, struct status_why *why);

/** What a divergence's base is recognised by: the model's id or that of a file of rows. */
struct doc_field doc_base_id(const struct doc_field *root);

/** Two values must be the same. Fails: as doc_fields_equal. */
enum status doc_values_equal(const struct doc_field *a, const struct doc_field *b,
                             struct status_why *why);

/**
 * The text's hash must be the same, if both results have one: `text` is null where the tokens
 * come from a base's file. And so where the texts are documents: how long each is, its category and
 * which of its tokens are scored. Fails: as doc_fields_equal.
 */
enum status doc_fields_same_text(const struct doc_field *a, const struct doc_field *b,
                                 struct status_why *why);

#endif
