/**
 * JSON documents, built with cJSON and written whole or not at all.
 *
 * A failed allocation is remembered in the document and reported when it is written, so that
 * the code that fills it needs no checks. Numbers keep all their digits: integers are exact,
 * reals have 17 significant digits, and what is not finite is null (JSON has no word for it).
 */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "eval/atomic_file.h"

struct cli_json {
    cJSON *root; /* an object */
    bool failed; /* something could not be allocated */
};

/** Begin a document; release with cli_json_free(). */
void cli_json_begin(struct cli_json *json);
/** A zero-initialised object is allowed. */
void cli_json_free(struct cli_json *json);

/** Add an object or a list. parent: an object, or a list with key NULL. NULL is passed on. */
cJSON *cli_json_object(struct cli_json *json, cJSON *parent, const char *key);
cJSON *cli_json_list(struct cli_json *json, cJSON *parent, const char *key);

/** Add a value; the same rules for parent and key. A text of NULL is null. */
void cli_json_text(struct cli_json *json, cJSON *parent, const char *key, const char *text);
void cli_json_flag(struct cli_json *json, cJSON *parent, const char *key, bool value);
void cli_json_int(struct cli_json *json, cJSON *parent, const char *key, int64_t value);
void cli_json_uint(struct cli_json *json, cJSON *parent, const char *key, uint64_t value);
void cli_json_real(struct cli_json *json, cJSON *parent, const char *key, double value);

/** Bytes of unknown origin as a text: what is no UTF-8, and NUL, becomes U+FFFD. */
void cli_json_bytes(struct cli_json *json, cJSON *parent, const char *key, const char *bytes,
                    size_t n_bytes);

/** The document as a text; the caller frees *out. Fails: STATUS_MEMORY. */
enum status cli_json_text_of(const struct cli_json *json, char **out, struct status_why *why);

/** Write the document and a newline. Fails: STATUS_MEMORY. */
enum status cli_json_write(const struct cli_json *json, struct eval_file *file,
                           struct status_why *why);

#endif
