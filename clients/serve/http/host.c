#include "clients/serve/http/host.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

enum { MAX_NAME = 254 }; /* of the domain name system, with a final dot */

/** The end, or a port. */
static bool is_rest(const char *rest)
{
    size_t n = *rest == ':' ? strspn(rest + 1, "0123456789") : 0;
    return *rest == ':' ? n >= 1 && n <= 5 && rest[n + 1] == '\0' : *rest == '\0';
}

static bool is_own_v6(const char *address, const char *given)
{
    struct in6_addr v6, own;
    if (inet_pton(AF_INET6, address, &v6) != 1)
        return false;
    return IN6_IS_ADDR_LOOPBACK(&v6) ||
           (inet_pton(AF_INET6, given, &own) == 1 && memcmp(&v6, &own, sizeof v6) == 0);
}

static bool is_own_name(const char *name, const char *given)
{
    struct in_addr v4;
    size_t n_given = strlen(given);
    if (n_given > 0 && given[n_given - 1] == '.')
        n_given--;
    return strcasecmp(name, "localhost") == 0 ||
           (strlen(name) == n_given && strncasecmp(name, given, n_given) == 0) ||
           (inet_pton(AF_INET, name, &v4) == 1 && ntohl(v4.s_addr) >> 24 == 127);
}

bool serve_host_is_own(const char *value, const char *given)
{
    char name[MAX_NAME + 1];
    bool is_v6 = *value == '[';
    value += is_v6;
    size_t n = strcspn(value, is_v6 ? "]" : ":");
    const char *rest = value + n + is_v6;
    if (n == 0 || n > MAX_NAME || (is_v6 && value[n] != ']') || !is_rest(rest))
        return false;
    memcpy(name, value, n);
    name[n] = '\0';
    if (is_v6)
        return is_own_v6(name, given);
    if (name[n - 1] == '.')
        name[n - 1] = '\0';
    return *name && is_own_name(name, given);
}
