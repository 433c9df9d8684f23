/** The socket that a server listens on. */
#ifndef SERVE_HTTP_LISTEN_H
#define SERVE_HTTP_LISTEN_H

#include "base/status.h"

enum { SERVE_ADDRESS_BYTES = 96 };

/**
 * Listen. port 0: any that is free.   address: "http://127.0.0.1:8080".
 * Fails: STATUS_USAGE (no such host), STATUS_IO.
 */
enum status serve_listen(int *out, char address[SERVE_ADDRESS_BYTES], const char *host,
                         unsigned port, struct status_why *why);

#endif
