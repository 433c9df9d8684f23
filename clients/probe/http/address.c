/* What both builds have: the address, waiting, what an exchange holds. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "clients/probe/http/http.h"

enum status probe_address(char **out, const char *url, struct status_why *why)
{
    *out = NULL;
    size_t scheme = strncasecmp(url, "http://", 7) == 0    ? 7
                    : strncasecmp(url, "https://", 8) == 0 ? 8
                                                           : 0;
    if (!scheme || !url[scheme] || url[scheme] == '/')
        return status_fail(why, STATUS_USAGE,
                           "--url: expected http://HOST:PORT or https://HOST:PORT, found '%.200s'",
                           url);
    for (const char *c = url; *c; c++)
        if ((unsigned char)*c <= ' ' || *c == 0x7f)
            return status_fail(why, STATUS_USAGE, "--url: a blank or a control character in it");
    if (strpbrk(url, "?#"))
        return status_fail(why, STATUS_USAGE,
                           "--url: expected an address without a query, found '%.200s'", url);
    if (strchr(url + scheme, '@')) /* not repeated: it may be a password */
        return status_fail(why, STATUS_USAGE,
                           "--url: credentials in an address are seen by others; give a key by "
                           "--api-key-file");
    size_t n = strlen(url);
    while (n > scheme && url[n - 1] == '/')
        n--;
    if (n > scheme + 3 && strncmp(url + n - 3, "/v1", 3) == 0)
        n -= 3;
    while (n > scheme && url[n - 1] == '/')
        n--;
    *out = strndup(url, n);
    return *out ? STATUS_OK : status_fail(why, STATUS_MEMORY, "no memory for an address");
}

void probe_exchange_free(struct probe_exchange *exchange)
{
    free(exchange->bytes);
    exchange->bytes = NULL;
    exchange->n_bytes = 0;
}
