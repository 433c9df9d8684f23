/**
 * JSON documents, built with cJSON and written whole or not at all.
 *
 * A failed allocation is remembered in the document and reported when it is written, so that
 * the code that fills it needs no checks. Numbers keep all their digits: integers are exact,
 * reals have 17 significant digits, and what is not finite is null (JSON has no word for it).
 */
#ifndef BASE_JSON_BUILD_H
#define BASE_JSON_BUILD_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file/atomic_file.h"

struct base_json {
    cJSON *root; /* an object */
    bool failed; /* something could not be allocated */
};

/** Begin a document; release with base_json_free(). */
void base_json_begin(struct base_json *json);
/** A zero-initialised object is allowed. */
void base_json_free(struct base_json *json);

/** Add an object or a list. parent: an object, or a list with key NULL. NULL is passed on. */
cJSON *base_json_object(struct base_json *json, cJSON *parent, const char *key);
cJSON *base_json_list(struct base_json *json, cJSON *parent, const char *key);

/** Add a value; the same rules for parent and key. A text of NULL is null. */
void base_json_text(struct base_json *json, cJSON *parent, const char *key, const char *text);
void base_json_flag(struct base_json *json, cJSON *parent, const char *key, bool value);
void base_json_int(struct base_json *json, cJSON *parent, const char *key, int64_t value);
void base_json_uint(struct base_json *json, cJSON *parent, const char *key, uint64_t value);
void base_json_real(struct base_json *json, cJSON *parent, const char *key, double value);

/** Bytes of unknown origin as a text: what is no UTF-8, and NUL, becomes U+FFFD. */
void base_json_bytes(struct base_json *json, cJSON *parent, const char *key, const char *bytes,
                     size_t n_bytes);

/** The document as a text; the caller frees *out. Fails: STATUS_MEMORY. */
enum status base_json_text_of(const struct base_json *json, char **out, struct status_why *why);

/**
 * Write a piece of a JSON text, with escapes for U+007F to U+009F, which JSON allows and a
 * terminal obeys, and for bytes that are not UTF-8, which become U+FFFD.
 */
void base_json_put(struct base_file *file, const char *text, size_t n_bytes);

/** Write the document and a newline. Fails: STATUS_MEMORY. */
enum status base_json_write(const struct base_json *json, struct base_file *file,
                            struct status_why *why);

#endif
