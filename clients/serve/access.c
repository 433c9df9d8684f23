/* Who may ask. */
#include <string.h>
#include <strings.h>

#include "clients/serve/http/host.h"
#include "clients/serve/serve.h"

/** Whether two digests are equal, in a time that does not depend on where they differ. */
static bool same_digest(const char *a, const char *b)
{
    unsigned difference = 0;
    for (size_t i = 0; i + 1 < BASE_HEX; i++)
        difference |= (unsigned)(a[i] ^ b[i]);
    return difference == 0;
}

bool serve_has_key(const struct serve *serve, const struct serve_http_request *r)
{
    char digest[BASE_HEX];
    if (!*serve->key_digest)
        return true;
    const char *given = serve_http_header(r, "Authorization");
    if (!given || strncasecmp(given, "Bearer ", 7) != 0)
        return false;
    return !base_sha256(digest, given + 7, strlen(given + 7), NULL) &&
           same_digest(digest, serve->key_digest);
}

bool serve_is_from_a_page(const struct serve *serve, const struct serve_http_request *r)
{
    const char *host = serve_http_header(r, "Host"), *site = serve_http_header(r, "Sec-Fetch-Site");
    bool is_asked_here = !site || strcmp(site, "none") == 0 || strcmp(site, "same-origin") == 0;
    return serve_http_header(r, "Origin") || !is_asked_here ||
           (host && !serve_host_is_own(host, serve->settings->host));
}
