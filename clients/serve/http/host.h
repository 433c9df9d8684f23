/** The name by which a request came: a page's that stands for this machine's address, or our own.
 */
#ifndef SERVE_HTTP_HOST_H
#define SERVE_HTTP_HOST_H

#include <stdbool.h>

/**
 * Whether the value of a header Host is a name of this machine: `localhost`, an address 127.x.x.x,
 * `[::1]` in any spelling, or the name or address that the server was told to listen on (given).
 * A name may end with a dot. `:` and one to five digits may follow, and nothing else.
 */
bool serve_host_is_own(const char *value, const char *given);

#endif
