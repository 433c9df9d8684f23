/**
 * The connections of a server: how long each may take, and which one goes when there are too many.
 *
 * A request with its key takes a place; there are so many. A connection without one waits: it has
 * not sent a request yet, or none that was let in. While there are more connections than places,
 * those that wait give way, so whoever sends slowly, or nothing, keeps nobody out.
 */
#ifndef SERVE_HTTP_CONNECTIONS_H
#define SERVE_HTTP_CONNECTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct serve_connections;

/** A client, from its connection on. */
struct serve_http_connection {
    void *now; /* of the library: the request that is handled; NULL before the first */
    int fd;
    struct serve_connections *among;

    /* Under the lock of all connections. */

    uint8_t address[16]; /* of IPv6 the network of 64 bits */
    double since;        /* when it began to wait */
    double deadline;     /* for its next bytes; 0: none */
    bool has_place;
    bool is_cut; /* its thread is about to notice */
    struct serve_http_connection *next;
};

struct serve_connections_options {
    unsigned n_places;
    unsigned n_most; /* connections, with a place or without */
    double seconds;  /* in which a request must have come */
    double patience; /* seconds that a connection may wait while there are more than places; none
                        while there are more than the most */
};

/** Fails: STATUS_MEMORY, STATUS_DEVICE (no thread). */
enum status serve_connections_open(struct serve_connections **out,
                                   const struct serve_connections_options *options,
                                   struct status_why *why);
/** All have left. NULL is allowed. */
void serve_connections_close(struct serve_connections *all);

/** A client has connected; NULL: no memory. If there are too many now, another one is cut. */
struct serve_http_connection *serve_connection_enter(struct serve_connections *all, int fd);
/** Its descriptor is about to be closed. Frees it; NULL is allowed. */
void serve_connection_leave(struct serve_http_connection *c);

/** Take a place, and keep it up to serve_connection_wait(); false: there is none. */
bool serve_connection_take_place(struct serve_http_connection *c);
/** The request is over: wait for the next one. */
void serve_connection_wait(struct serve_http_connection *c);
/** From now on its bytes must come, or go, within so many seconds; 0: no limit. */
void serve_connection_limit(struct serve_http_connection *c, double seconds);

/**
 * The reply is all that the client gets: say so, and take what it still sends, for so many seconds
 * at most. To close at once would throw away a reply that it has not read yet.
 */
void serve_connection_finish(struct serve_http_connection *c, double seconds);

#endif
