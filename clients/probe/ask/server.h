/** A server that is asked: who it is, what it can, and requests to it, each tried again if it may
 * help. */
#ifndef PROBE_ASK_SERVER_H
#define PROBE_ASK_SERVER_H

#include "base/file/atomic_file.h"
#include "clients/probe/api/about.h"
#include "clients/probe/ask/windows.h"
#include "clients/probe/http/http.h"

struct probe_journal;

/** Release with probe_server_close. */
struct probe_server {
    struct probe_http *http;
    struct probe_journal *journal; /* borrowed; NULL: none */
    const struct probe_api *api;
    bool told;                    /* by the user, and not found out */
    char model[PROBE_MODEL_NAME]; /* its name of the model; "": it says none */
    struct probe_said said;       /* released with the rest */
    bool as_ids, prompt_lists;
    size_t k;          /* log-probabilities of a list */
    int64_t n_ctx;     /* -1: not said */
    size_t longest;    /* tokens of the longest prompt that will be asked about */
    size_t n_requests; /* sent so far, those that were tried again counted */
    size_t n_asked;    /* so far, each once, those counted that the journal answered */
    size_t n_tries;    /* of a request, at most */
    double patience;   /* seconds that a server may be busy in a row; no longer is waited for it */
    double busy_since; /* on base_clock_seconds(); 0: it is not, as far as is known */
    /** Before each wait for a busy server: what it said, and how long. NULL: nothing. */
    void (*waits)(void *user, const char *failure, double seconds);
    void *user;
    int32_t plain; /* a token of letters, -1: none */
    uint64_t run;  /* as of struct probe_ask */
};

/**
 * Find out who answers at an open connection, or take what is told (--api; NULL: nothing is).
 * Fails: STATUS_IO (no server, or a busy one, with the request that failed), STATUS_CANCELLED,
 * STATUS_MEMORY.
 */
enum status probe_server_identify(struct probe_server *server, const char *api,
                                  struct status_why *why);
/**
 * Find out what it can, with the first `length` tokens of a window.
 * Fails: STATUS_UNSUPPORTED (it gives no log-probabilities, with its own words), as above.
 */
enum status probe_server_try(struct probe_server *server, const struct probe_window *window,
                             size_t length, struct status_why *why);
/**
 * Send the first `length` tokens of a window as a text to a server that takes ids, and note how
 * many it counts. One that does not answer says nothing.   Fails: as probe_server_ask.
 */
enum status probe_server_count(struct probe_server *server, const struct probe_window *window,
                               size_t length, struct status_why *why);
/** "llama-server: takes token ids; 100 log-probabilities ...". */
void probe_server_describe(char *out, size_t capacity, const struct probe_server *server);

/** A prompt and what became of it. Zero-initialise; release with probe_reply_free. */
struct probe_reply {
    const struct probe_window *window; /* of which it is the beginning */
    size_t length, n_new;
    bool reuse;
    size_t time; /* how often it was asked before */
    /* out */
    struct probe_answer answer;
    bool ok;
    long code;         /* HTTP's; 0: there was no whole answer */
    char failure[512]; /* a sentence: the request, and what became of it */
};
/**
 * Ask about n beginnings of windows at the same time. A server that fails is in the replies.
 * Fails: STATUS_CANCELLED, STATUS_MEMORY, STATUS_DEVICE, STATUS_IO (the journal).
 */
enum status probe_server_ask(struct probe_server *server, struct probe_reply *replies, size_t n,
                             struct status_why *why);
void probe_reply_free(struct probe_reply *reply);

#endif
