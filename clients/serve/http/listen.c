#include "clients/serve/http/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/system/system.h"
#include "clients/serve/http/http.h"

static struct addrinfo *look_up(const char *host, unsigned port, int *error)
{
    char digits[16];
    struct addrinfo *found = NULL;
    const struct addrinfo hints = {.ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM};
    snprintf(digits, sizeof digits, "%u", port);
    *error = getaddrinfo(host, digits, &hints, &found);
    return *error ? NULL : found;
}

static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const void *)address;
        return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
    }
    const struct sockaddr_in6 *v6 = (const void *)address;
    return address->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

bool serve_http_is_loopback(const char *host)
{
    int error;
    struct addrinfo *all = look_up(host, 0, &error);
    bool loopback = all != NULL;
    for (const struct addrinfo *one = all; one; one = one->ai_next)
        loopback = loopback && is_loopback(one->ai_addr);
    if (all)
        freeaddrinfo(all);
    return loopback;
}

static void name_address(char out[SERVE_ADDRESS_BYTES], int fd)
{
    struct sockaddr_storage address;
    socklen_t n = sizeof address;
    char host[64] = "?", port[16] = "?";
    if (getsockname(fd, (struct sockaddr *)&address, &n) == 0)
        getnameinfo((struct sockaddr *)&address, n, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV);
    bool v6 = strchr(host, ':');
    snprintf(out, SERVE_ADDRESS_BYTES, "http://%s%s%s:%s", v6 ? "[" : "", host, v6 ? "]" : "",
             port);
}

enum status serve_listen(int *out, char address[SERVE_ADDRESS_BYTES], const char *host,
                         unsigned port, struct status_why *why)
{
    const int on = 1;
    int error;
    struct addrinfo *found = look_up(host, port, &error);
    if (!found)
        return status_fail(why, STATUS_USAGE, "--host %s: %s", host, gai_strerror(error));
    int fd = base_system_socket(found->ai_family, true);
    bool listens = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
                   bind(fd, found->ai_addr, found->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0;
    error = errno;
    freeaddrinfo(found);
    if (!listens) {
        if (fd >= 0)
            close(fd);
        return status_fail(why, STATUS_IO, "%s, port %u: cannot listen there: %s", host, port,
                           strerror(error));
    }
    name_address(address, fd);
    *out = fd;
    return STATUS_OK;
}
