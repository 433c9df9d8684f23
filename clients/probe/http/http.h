/**
 * Requests to one server: bounded in size and time, cancellable, to the user's address alone. No
 * redirects, no proxies of the environment, no credentials but those of the options.
 */
#ifndef PROBE_HTTP_HTTP_H
#define PROBE_HTTP_HTTP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

struct probe_http;

struct probe_http_options {
    const char *api_key;       /* sent as a bearer token; NULL: none */
    double seconds;            /* for each request, from its beginning to its end */
    size_t max_bytes;          /* of an answer */
    const atomic_bool *cancel; /* may be NULL */
};

/** A request and what became of it. Release with probe_exchange_free. */
struct probe_exchange {
    const char *path; /* "/v1/models" */
    const char *body; /* JSON, to be posted; NULL: the path is got */
    const char *key;  /* the same without what is of this run only; NULL: all of it is */
    /* out */
    long code;   /* HTTP's; 0: there was no whole answer */
    char *bytes; /* of the answer, with a NUL after them that does not count; NULL: none */
    size_t n_bytes;
    bool is_final;      /* it would fail again: nobody listens, too slow, too long */
    double retry_after; /* seconds; negative: not said */
    char failure[256];  /* why there was no whole answer */
};

/**
 * url: http://HOST:PORT or https://HOST:PORT, a path before the API's and "/v1" after it allowed.
 * Fails: STATUS_USAGE (no such address, credentials or a query in it), STATUS_UNSUPPORTED (libcurl
 *        is missing), STATUS_MEMORY.
 */
enum status probe_http_open(struct probe_http **out, const char *url,
                            const struct probe_http_options *options, struct status_why *why);
/** NULL is allowed. */
void probe_http_close(struct probe_http *http);
/** What paths are put after. */
const char *probe_http_base(const struct probe_http *http);

/**
 * Send n requests at the same time and wait for all. What becomes of each is in the exchange: a
 * server that does not answer is no failure of this function.
 * Fails: STATUS_CANCELLED, STATUS_MEMORY, STATUS_DEVICE (libcurl itself).
 */
enum status probe_http_send(struct probe_http *http, struct probe_exchange *exchanges, size_t n,
                            struct status_why *why);
/** Wait, but not beyond a cancellation. Fails: STATUS_CANCELLED. */
enum status probe_http_wait(const struct probe_http *http, double seconds, struct status_why *why);
void probe_exchange_free(struct probe_exchange *exchange);

/** The address without what is after it; see probe_http_open. The caller frees *out. */
enum status probe_address(char **out, const char *url, struct status_why *why);

#endif
