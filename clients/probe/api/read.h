/**
 * What the readers of the forms share. The answer keeps the first failure; what is read afterwards
 * is left out.
 */
#ifndef PROBE_API_READ_H
#define PROBE_API_READ_H

#include <cjson/cJSON.h>

#include "clients/probe/api/answer.h"

/** Begin a list; entries follow, and then its end. NULL after a failure. Else valid until the next
 * one begins. Fails: STATUS_MEMORY, STATUS_FORMAT (too many). */
struct probe_place *probe_read_place(struct probe_answer *a, bool generated, size_t index);
/** Add an entry to the list. text: NULL where `id` says it. */
void probe_read_entry(struct probe_answer *a, int32_t id, const char *text, size_t n_text,
                      const cJSON *log_q);
/** End the list: it is not taken with a value that is no number, an id twice, or no entries. */
void probe_read_end(struct probe_answer *a);
/** Keep a text of n bytes; none after a failure. */
struct probe_text probe_read_text(struct probe_answer *a, const char *text, size_t n);
/** Add an id to the answer's prompt, or to what was written. */
void probe_read_token(struct probe_answer *a, struct model_tokens *tokens, const cJSON *id);

/** An id of JSON; -1: it is none. */
int32_t probe_read_id(const cJSON *value);
/** A count of JSON; -1: it is none. */
int64_t probe_read_count(const cJSON *object, const char *key);

/** As probe_answer_read, of what is parsed already. */
enum status probe_read_root(struct probe_answer *out, const cJSON *root, struct status_why *why);

/**
 * Give n_lists lists of written tokens, read before, their places among these: `ids` are all that
 * were written, where the answer has them, n_written is how many the server counts (-1: it does
 * not). Lists whose place is not known are forgotten.
 */
void probe_read_written(struct probe_answer *a, const cJSON *ids, int64_t n_written,
                        size_t n_lists);

#endif
