/** Which prompts a server is asked, in which order, and what comes of asking them. */
#ifndef PROBE_ASK_PLAN_H
#define PROBE_ASK_PLAN_H

#include "clients/probe/ask/again.h"
#include "clients/probe/ask/lists.h"
#include "clients/probe/ask/server.h"

/** Beginnings around the edges of batches. */
#define PROBE_LENGTHS "1,2,31,32,33,63,64,65,511,512,513,1025,2049"

/** Passages, and what the server writes after each. */
enum { PROBE_MAX_PASSAGES = 2, PROBE_MAX_WINDOWS = 2 * PROBE_MAX_PASSAGES };

struct probe_prompt {
    size_t window, length, n_new;
    enum probe_path path;
};

/** What is asked, and where it is kept. Zero-initialise but for the first part. */
struct probe_questions {
    struct probe_server *server;
    const struct model_tokenizer *tokenizer;
    const struct probe_names *names;
    size_t concurrency; /* 1: nothing is asked at the same time */
    size_t most;        /* requests */
    size_t n_times; /* that each prompt is asked, but those after which tokens are written; 0: 1 */
    bool spread;    /* more prompts than the lengths, between them, as far as `most` allows */
    bool tokens_matter; /* lengths are moved to where a text survives (texts, not ids) */
    size_t most_lists;  /* of an answer that are kept; 0: as many as tell a fault from another */
    /** Told before each request, in order; NULL: nobody is. */
    void (*progress)(void *user, size_t done, size_t n);
    void *user;

    struct probe_window *windows; /* [n_windows] */
    size_t n_windows;
    struct probe_prompt *prompts;
    size_t n_prompts, capacity;
    size_t n_left_out; /* prompts for which there were too few requests */
    struct probe_lists lists;
    size_t known[PROBE_MAX_WINDOWS]; /* tokens of the longest prompt of each that was asked */
    bool is_noisy;                   /* the same request gave other values */
    double noise; /* RMS, weighted by the first answer's probabilities; NaN: not known, or
                     no token is in both */
    struct probe_repeats repeats;
};

/**
 * Lay the prompts: beginnings of so many tokens of each window, fresh; the last length of each
 * stretch once more of each window, when the server may have it in its cache; tokens that the
 * server writes; several at once; with `spread` also beginnings of other stretches. Passages
 * alternate. lengths: [n_lengths], any order; for those that a window or the server's context does
 * not have, the longest that fits is asked.
 * Fails: STATUS_MEMORY; STATUS_USAGE (no length is left).
 */
enum status probe_plan(struct probe_questions *q, const int64_t *lengths, size_t n_lengths,
                       struct status_why *why);
/**
 * Cut a text into windows of n tokens, one after the other, each from the beginning of a line or a
 * word; at most q->most. The last one may be shorter only where it is the first, too.
 * Fails: as probe_window_make.
 */
enum status probe_cut_windows(struct probe_questions *q, struct base_string text, size_t n,
                              struct status_why *why);
/**
 * Lay prompts for predictions of the second halves of windows, of which there is one at least.
 * From a server that lists the tokens of prompts: each window but its last token. From others:
 * beginnings, some of each window, spread over its second half. The last beginning of the first
 * window is among them. With `concurrency`, so many are asked at a time.
 * Fails: STATUS_MEMORY; STATUS_USAGE (nothing can be asked).
 */
enum status probe_plan_halves(struct probe_questions *q, struct status_why *why);
/**
 * The longest beginning of a window with a token after it that can be sent as ids and as text; 0:
 * there is none.   Fails: as probe_window_survives.
 */
enum status probe_plan_longest(size_t *out, const struct probe_questions *q, size_t window,
                               struct status_why *why);
/**
 * Ask all. What a server cannot answer is counted in the lists.
 * Fails: STATUS_CANCELLED, STATUS_MEMORY, STATUS_IO (five requests in a row failed, with the last;
 *        the journal).
 */
enum status probe_ask_all(struct probe_questions *q, struct status_why *why);
/**
 * Ask the longest prompt of the first window once more, for a list of one token: values that depend
 * on how many are listed show by it. Fails: as probe_ask_all.
 */
enum status probe_ask_short(struct probe_questions *q, struct status_why *why);
void probe_questions_free(struct probe_questions *q);

#endif
