/**
 * Requests of an external harness: a file of JSON lines, an object each. {"context": ...,
 * "continuation": ...} asks how likely the continuation is after the context, {"text": ...} how
 * likely a whole text is. Other members are handed through to the result. The file is hostile.
 */
#ifndef EVAL_INPUT_REQUESTS_H
#define EVAL_INPUT_REQUESTS_H

#include <stdbool.h>
#include <stddef.h>

#include "gguf/file.h"

/** One line. Strings point into the bytes that were read. */
struct eval_request {
    size_t line;                /* from 1 */
    bool rolling;               /* a whole text, which is in `text`; no context */
    struct base_string context; /* may be empty */
    struct base_string text;    /* the continuation, or the whole text */
    struct base_string handed;  /* the other members as they stand: `"id": 7,"x": [1, 2]`; may
                                   be empty. Members that a result has are not among them. */
};

/** Zero-initialise; release with eval_requests_free. */
struct eval_requests {
    struct eval_request *items; /* in the order of the file */
    size_t n, capacity;
};

/** The members of a result, which requests cannot hand through. Ends with NULL. */
extern const char *const eval_request_result_members[];

/**
 * Read all lines; empty ones do not count, the last needs no newline.
 * bytes: rewritten in place; they must outlive the requests.
 * Fails: STATUS_FORMAT (a line that is no JSON object, neither or both of "continuation" and
 *        "text", a member that is no string or given twice, a character U+0000, no lines),
 *        STATUS_MEMORY.
 */
enum status eval_requests_read(struct eval_requests *out, char *bytes, size_t n_bytes,
                               struct status_why *why);
/** A zero-initialised or failed object is allowed. */
void eval_requests_free(struct eval_requests *requests);

/** Bytes at the end of a UTF-8 text that are blanks, as Python's str.rstrip() has them. */
size_t eval_trailing_blanks(struct base_string text);

#endif
