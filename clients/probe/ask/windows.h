/** The texts that are asked about: each a run of tokens of which beginnings are the prompts. */
#ifndef PROBE_ASK_WINDOWS_H
#define PROBE_ASK_WINDOWS_H

#include <stdbool.h>

#include "base/text/string.h"
#include "model/model.h"

/** Zero-initialise; release with probe_window_free. */
struct probe_window {
    struct model_tokens tokens; /* with BOS first, where the model's texts have it */
    size_t n_prompt;            /* what comes after was written by the server */
    char *text;                 /* of the tokens but BOS; NULL: it has none */
    size_t *ends;               /* [n_prompt + 1]: bytes that tokens 0 .. i-1 stand for */
    bool has_bos;
};

/**
 * A window of up to n tokens of a text.
 * Fails: STATUS_MEMORY, as model_tokenize.
 */
enum status probe_window_make(struct probe_window *out, const struct model_tokenizer *tokenizer,
                              const char *text, size_t n_bytes, size_t n, struct status_why *why);
/** A window of tokens, which a server must take as ids. Fails: STATUS_MEMORY. */
enum status probe_window_of_ids(struct probe_window *out, const struct model_tokenizer *tokenizer,
                                const int32_t *ids, size_t n, struct status_why *why);
void probe_window_free(struct probe_window *window);

/**
 * Whether the first `length` tokens, sent as text, become the same tokens again, and are UTF-8.
 * Fails: STATUS_MEMORY.
 */
enum status probe_window_survives(bool *out, const struct probe_window *window,
                                  const struct model_tokenizer *tokenizer, size_t length,
                                  struct status_why *why);

/** Tokens by their bytes. */
struct probe_names;
/** Fails: STATUS_MEMORY. */
enum status probe_names_make(struct probe_names **out, const struct model_tokenizer *tokenizer,
                             struct status_why *why);
void probe_names_free(struct probe_names *names);
/** -1: no token, or several, have these bytes. */
int32_t probe_names_find(const struct probe_names *names, const char *bytes, size_t n_bytes);
/** A token of letters after a blank; -1: there is none. */
int32_t probe_names_plain(const struct probe_names *names);
size_t probe_names_n_vocab(const struct probe_names *names);

#endif
