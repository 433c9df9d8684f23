/**
 * Answers of servers: lists of log-probabilities, in any of the forms that servers have. The text
 * is hostile: what it says is checked, bounded and either taken or counted as spoilt.
 */
#ifndef PROBE_API_ANSWER_H
#define PROBE_API_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "model/model.h"

/** An entry of a list: the token by its id, or where that is not said (-1) by its bytes. */
struct probe_entry {
    int32_t id;
    double log_q;
    size_t text, n_text; /* in the answer's `bytes` */
};

/** In the answer's `bytes`. */
struct probe_text {
    size_t at, n;
};

/** A list. */
struct probe_place {
    bool generated; /* it predicts the index-th token that was made, else that of the prompt */
    bool repeats;   /* it has an id twice */
    bool merged;    /* a dictionary by texts: tokens of the same text have fallen together */
    size_t index;
    int32_t token;          /* that was made there, or that the prompt has; -1: not said */
    size_t first, n;        /* entries */
    struct probe_text text; /* of that token; none: not said */
};

/** Release with probe_answer_free. */
struct probe_answer {
    struct probe_entry *entries;
    struct probe_place *places;
    char *bytes;
    size_t n_entries, entries_capacity, n_places, places_capacity, n_bytes, bytes_capacity;
    int64_t n_prompt, n_cached; /* tokens, as the server counts them; -1: not said */
    size_t n_spoilt;            /* lists with something impossible */
    char spoilt[160];           /* what is, in the first of them */
    bool of_llama;              /* in a form of llama.cpp's relatives */
    struct probe_text first;    /* of the prompt's first token, which has no list; none: not said */
    struct model_tokens prompt; /* its ids, where a record has them */
    struct model_tokens written; /* the ids of all tokens that were made, where it has them */
    struct status_kept kept;     /* the first failure of reading it */
};

enum { PROBE_MAX_PLACES = 1 << 17, PROBE_MAX_ENTRIES = 1 << 22 };

/**
 * Read an answer: llama-server's /completion, SGLang's /generate, Ollama's /api/generate, the
 * completions of OpenAI in their forms (`content`; `top_logprobs`; vLLM's `prompt_logprobs`), and
 * what vLLM's Python objects are as JSON. out: released by the caller, also after a failure.
 * Fails: STATUS_FORMAT (no JSON, or none of these forms), STATUS_MEMORY, STATUS_UNSUPPORTED.
 */
enum status probe_answer_read(struct probe_answer *out, const char *bytes, size_t n_bytes,
                              struct status_why *why);
void probe_answer_free(struct probe_answer *answer);

/** The server's own words about an error, cut to `capacity`; "" where there are none. */
void probe_answer_error(char *out, size_t capacity, const char *bytes, size_t n_bytes);

#endif
