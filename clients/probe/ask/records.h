/** Answers that somebody recorded: JSON lines with the request and the response of each. */
#ifndef PROBE_ASK_RECORDS_H
#define PROBE_ASK_RECORDS_H

#include "clients/probe/ask/lists.h"

struct probe_records {
    struct probe_window *windows; /* [n]: one for each prompt that begins no other */
    size_t n, capacity;
    size_t n_lines;
    bool of_llama; /* the first answer is of one of llama.cpp's relatives */
    struct probe_lists lists;
    /* while it is read: */
    const struct model_tokenizer *tokenizer;
    const struct probe_names *names;
};

/**
 * Read the lines of a file: {"request": {"prompt": ids or text, ...}, "response": {...}}, or vLLM's
 * RequestOutput. A text becomes tokens as the model's own texts do.
 * Fails: STATUS_FORMAT (with the line), STATUS_MEMORY.
 */
enum status probe_records_read(struct probe_records *out, char *bytes, size_t n_bytes,
                               const struct model_tokenizer *tokenizer,
                               const struct probe_names *names, struct status_why *why);
void probe_records_free(struct probe_records *records);

#endif
