/** What the readers of the forms share. */
#ifndef PROBE_API_READ_H
#define PROBE_API_READ_H

#include <cjson/cJSON.h>

#include "clients/probe/api/answer.h"

/** Begin a list; entries follow. Fails: STATUS_MEMORY, STATUS_FORMAT (too many). */
enum status probe_read_place(struct probe_answer *a, bool generated, size_t index,
                             struct status_why *why);
/** Forget the last list: it has something impossible. format: what. */
__attribute__((format(printf, 2, 3))) void probe_read_spoil(struct probe_answer *a,
                                                            const char *format, ...);
/** Add an entry to the last list. text: NULL where `id` says it. False: the list is spoilt. */
enum status probe_read_entry(struct probe_answer *a, int32_t id, const char *text, size_t n_text,
                             const cJSON *log_q, struct status_why *why);
/** An id of JSON; -1: it is none. */
int32_t probe_read_id(const cJSON *value);
/** A count of JSON; -1: it is none. */
int64_t probe_read_count(const cJSON *object, const char *key);

/** As probe_answer_read, of what is parsed already. */
enum status probe_read_root(struct probe_answer *out, const cJSON *root, struct status_why *why);

/** Lists of objects with `logprob` and `top_logprobs`: llama-server, Ollama, OpenAI's chats. */
enum status probe_read_contents(struct probe_answer *a, const cJSON *list, struct status_why *why);
/**
 * Give n_lists lists of written tokens, read before, their places among these: `ids` are all that
 * were written, where the answer has them, n_written is how many the server counts (-1: it does
 * not). Lists whose place is not known are forgotten. Fails: STATUS_MEMORY.
 */
enum status probe_read_written(struct probe_answer *a, const cJSON *ids, int64_t n_written,
                               size_t n_lists, struct status_why *why);
/** What has `meta_info`. */
enum status probe_read_sglang(struct probe_answer *a, const cJSON *root, struct status_why *why);
/** What has `choices`. */
enum status probe_read_choice(struct probe_answer *a, const cJSON *root, struct status_why *why);
/** vLLM's: a dictionary by id for each token of the prompt, the first one null. */
enum status probe_read_prompt(struct probe_answer *a, const cJSON *list, bool generated,
                              struct status_why *why);

#endif
