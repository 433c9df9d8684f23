/**
 * HTTP: requests in, replies out, each on a thread of its connection. http.c alone knows
 * libmicrohttpd, which it loads; http_none.c stands for it where the program is built without.
 */
#ifndef SERVE_HTTP_HTTP_H
#define SERVE_HTTP_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "clients/serve/budget.h"

struct serve_http_connection;

/** What became of a body. */
enum serve_http_body { SERVE_BODY_KEPT, SERVE_BODY_TOO_LONG, SERVE_BODY_NO_ROOM };

/** Its strings last as long as the call that is given it. */
struct serve_http_request {
    const char *method, *path; /* the path without a query, decoded */
    const char *body;          /* NULL: there is none, or it is not read yet */
    size_t n_body;
    bool has_body;     /* one is announced */
    const char *fault; /* of its headers, a sentence; NULL: there is none */
    enum serve_http_body kept;
    struct serve_budget *budget; /* of what is made of it */
    size_t n_announced;
    struct serve_http_connection *connection;
};

/** The value of a header; NULL where there is none. */
const char *serve_http_header(const struct serve_http_request *request, const char *name);

/** Whether the client has closed the connection. */
bool serve_http_is_gone(const struct serve_http_request *request);

enum { SERVE_CLIENT_BYTES = 64 };
/** The client's address, as "127.0.0.1"; "?" where it cannot be told. */
void serve_http_client(const struct serve_http_request *request, char out[SERVE_CLIENT_BYTES]);

/**
 * Take one of the places, until the reply has gone; false: all are taken. Whoever has none may be
 * cut for the next client.
 */
bool serve_http_take_place(const struct serve_http_request *request);

/** A body that comes piece by piece. */
struct serve_http_stream {
    /** The next piece, at most `capacity` bytes; waits for it. Returns 0 at the end. */
    size_t (*read)(void *user, char *out, size_t capacity);
    /** The reply is over, sent or not. */
    void (*end)(void *user);
    void *user;
};

/** Zero-initialise. */
struct serve_http_reply {
    unsigned code;
    const char *type; /* of the body; NULL: application/json */
    char *body;       /* given away, to be freed with free(); NULL: see stream */
    size_t n_body;
    struct serve_http_stream stream; /* read NULL: there is none */
    const char *allow;               /* methods, of a 405; NULL: no such header */
    unsigned retry_after;            /* seconds; 0: no such header */
    char location[64];               /* "": no such header */
};

struct serve_http_options {
    const char *host;            /* a name or an address of this machine */
    unsigned port;               /* 0: any that is free */
    size_t max_body;             /* bytes; what is longer is not kept, and the body NULL */
    struct serve_budget *budget; /* of the bodies, and of what is made of them */
    double seconds;              /* a request must have come, and 10 KB of a reply have gone, in */
    unsigned places;             /* for requests at a time */
    /**
     * The head of a request is there: whether to refuse it. Then the reply goes at once, the body
     * is not read, and the connection ends. Any thread.
     */
    bool (*refuse)(void *user, const struct serve_http_request *request,
                   struct serve_http_reply *reply);
    /** The request is there. Any thread; may take its time. */
    void (*answer)(void *user, const struct serve_http_request *request,
                   struct serve_http_reply *reply);
    void *user;
};

struct serve_http;

/**
 * Serve requests. The address is known, and connections wait, when this returns.
 * Fails: STATUS_UNSUPPORTED (no library), STATUS_USAGE (no such host), STATUS_IO (an address that
 * cannot be used), STATUS_MEMORY.
 */
enum status serve_http_open(struct serve_http **out, const struct serve_http_options *options,
                            struct status_why *why);
/** "http://127.0.0.1:8080". */
const char *serve_http_address(const struct serve_http *http);
/** Take no further connections; wait until replies that are due have gone, or seconds passed. */
void serve_http_drain(struct serve_http *http, double seconds);
/** Cut what is left. No handler may wait for anything that does not come. NULL is allowed. */
void serve_http_close(struct serve_http *http);

/** Whether every address that the host's name stands for is this machine's loopback. */
bool serve_http_is_loopback(const char *host);

#endif
