#include "eval/cluster/team.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "eval/run/difference.h"

static const double patience = 60; /* seconds until all have connected */
enum { LOOK_MS = 250, CONNECT_MS = 5000 };

/** What a rank says first. */
struct greeting {
    uint8_t token[BASE_SHA256_BYTES];
    uint32_t rank;
    uint32_t process;
    char host[EVAL_TEAM_HOST];
};

static void own_host(char host[EVAL_TEAM_HOST])
{
    if (gethostname(host, EVAL_TEAM_HOST) != 0)
        snprintf(host, EVAL_TEAM_HOST, "?");
    host[EVAL_TEAM_HOST - 1] = '\0';
}

/** A machine that loses its power says nothing: after half a minute it counts as gone. */
static void prepare_socket(int fd)
{
    const struct {
        int level, name, value;
    } options[] = {
        {SOL_SOCKET, SO_KEEPALIVE, 1},   {IPPROTO_TCP, TCP_KEEPIDLE, 10},
        {IPPROTO_TCP, TCP_KEEPINTVL, 5}, {IPPROTO_TCP, TCP_KEEPCNT, 4},
        {IPPROTO_TCP, TCP_NODELAY, 1},
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        setsockopt(fd, options[i].level, options[i].name, &options[i].value,
                   sizeof options[i].value);
}

/** All IPv4 addresses of this machine that others can reach. */
static void list_addresses(struct eval_team_address *out)
{
    struct ifaddrs *all = NULL;
    size_t n = 0;
    if (getifaddrs(&all) != 0)
        return;
    for (const struct ifaddrs *i = all; i && n < EVAL_TEAM_ADDRESSES; i = i->ifa_next) {
        struct sockaddr_in address;
        bool up = (i->ifa_flags & IFF_UP) && !(i->ifa_flags & IFF_LOOPBACK);
        if (!up || !i->ifa_addr || i->ifa_addr->sa_family != AF_INET)
            continue;
        memcpy(&address, i->ifa_addr, sizeof address);
        out->addresses[n++] = address.sin_addr.s_addr;
    }
    freeifaddrs(all);
}

enum status eval_team_listen(struct eval_team *team, size_t n_ranks, struct status_why *why)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
    socklen_t length = sizeof any;
    struct eval_team_address *address = &team->address;
    *team = (struct eval_team){.n_ranks = n_ranks, .listener = -1};
    team->links = calloc(n_ranks, sizeof *team->links);
    if (!team->links)
        return status_fail(why, STATUS_MEMORY, "no memory for %zu ranks", n_ranks);
    team->n_links = n_ranks - 1;
    for (size_t i = 0; i < team->n_links; i++)
        team->links[i].fd = -1;
    team->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (team->listener < 0 || bind(team->listener, (struct sockaddr *)&any, sizeof any) != 0 ||
        listen(team->listener, SOMAXCONN) != 0 ||
        getsockname(team->listener, (struct sockaddr *)&any, &length) != 0 ||
        getrandom(address->token, sizeof address->token, 0) != (ssize_t)sizeof address->token)
        return status_fail(why, STATUS_IO, "rank 0 cannot listen for the others: %s",
                           strerror(errno));
    address->port = any.sin_port;
    own_host(address->host);
    list_addresses(address);
    return STATUS_OK;
}

/** Whether all bytes agree, in a time that does not tell where they differ. */
static bool same_token(const uint8_t *a, const uint8_t *b)
{
    unsigned difference = 0;
    for (size_t i = 0; i < BASE_SHA256_BYTES; i++)
        difference |= a[i] ^ b[i];
    return difference == 0;
}

/** Take a connection, if it is one of ours: whoever else found the port is turned away. */
static void welcome(struct eval_team *team, int fd)
{
    struct eval_message message;
    struct greeting g;
    struct eval_link link;
    struct timeval limit = {.tv_sec = 5};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    bool whole = recv(fd, &message, sizeof message, MSG_WAITALL) == (ssize_t)sizeof message &&
                 message.kind == EVAL_MESSAGE_GREETING && message.n_bytes == sizeof g &&
                 recv(fd, &g, sizeof g, MSG_WAITALL) == (ssize_t)sizeof g;
    if (!whole || !same_token(g.token, team->address.token) || g.rank == 0 ||
        g.rank >= team->n_ranks || team->links[g.rank - 1].fd >= 0) {
        close(fd);
        return;
    }
    char name[sizeof link.name];
    snprintf(name, sizeof name, "rank %u (%.64s, process %u)", g.rank, g.host, g.process);
    prepare_socket(fd);
    eval_link_open(&team->links[g.rank - 1], fd, name);
}

static size_t first_missing(const struct eval_team *team)
{
    size_t i = 0;
    while (i < team->n_links && team->links[i].fd >= 0)
        i++;
    return i + 1;
}

enum status eval_team_gather(struct eval_team *team, const atomic_bool *cancel,
                             struct status_why *why)
{
    double began = base_clock_seconds();
    while (first_missing(team) < team->n_ranks) {
        struct pollfd about = {.fd = team->listener, .events = POLLIN};
        if (poll(&about, 1, LOOK_MS) > 0) {
            int fd = accept4(team->listener, NULL, NULL, SOCK_CLOEXEC);
            if (fd >= 0)
                welcome(team, fd);
        }
        if ((cancel && atomic_load(cancel)) || (team->heard && eval_link_pending(team->heard)))
            return status_fail(why, STATUS_CANCELLED, "%s", "");
        if (base_clock_seconds() - began > patience)
            return status_fail(why, STATUS_DEVICE,
                               "rank %zu of %zu did not connect to rank 0 (%s, port %u) within "
                               "%.0f s; it died, or the network between them is closed",
                               first_missing(team), team->n_ranks, team->address.host,
                               ntohs(team->address.port), patience);
    }
    close(team->listener);
    team->listener = -1;
    return STATUS_OK;
}

/** A socket that is connected within some seconds, or -1. */
static int connect_to(uint32_t ip, uint16_t port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = ip, .sin_port = port};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error = 0;
    struct pollfd about = {.fd = fd, .events = POLLOUT};
    socklen_t length = sizeof error;
    bool begun =
        fd >= 0 && (connect(fd, (struct sockaddr *)&to, sizeof to) == 0 || errno == EINPROGRESS);
    if (begun && poll(&about, 1, CONNECT_MS) > 0 &&
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

enum status eval_team_join(struct eval_team *team, size_t rank,
                           const struct eval_team_address *address, struct status_why *why)
{
    struct greeting g = {.rank = (uint32_t)rank, .process = (uint32_t)getpid()};
    int fd = -1;
    *team = (struct eval_team){.rank = rank, .listener = -1, .address = *address};
    memcpy(g.token, address->token, sizeof g.token);
    own_host(g.host);
    if (strcmp(g.host, address->host) == 0)
        fd = connect_to(htonl(INADDR_LOOPBACK), address->port);
    for (size_t i = 0; i < EVAL_TEAM_ADDRESSES && address->addresses[i] && fd < 0; i++)
        fd = connect_to(address->addresses[i], address->port);
    team->links = fd < 0 ? NULL : calloc(1, sizeof *team->links);
    if (fd >= 0 && !team->links) {
        close(fd);
        return status_fail(why, STATUS_MEMORY, "no memory for a connection");
    }
    if (fd < 0)
        return status_fail(
            why, STATUS_DEVICE,
            "rank %zu (%s) cannot connect to rank 0 (%.64s, port %u): it died, or the "
            "network between them is closed",
            rank, g.host, address->host, ntohs(address->port));
    team->n_links = 1;
    prepare_socket(fd);
    eval_link_open(&team->links[0], fd, "rank 0");
    struct eval_part part = {&g, sizeof g};
    return eval_link_send(&team->links[0], EVAL_MESSAGE_GREETING, STATUS_OK, &part, 1, why);
}

/** Compare the settings of one rank with those of rank 0. */
static enum status agree(struct eval_link *link, const char *settings, struct status_why *why)
{
    struct eval_message message;
    enum status status = eval_link_receive(link, &message, why);
    if (status)
        return link->lost
                   ? status_fail(why, status, "%s died while it opened its files", link->name)
                   : status;
    if (message.kind != EVAL_MESSAGE_READY)
        return eval_link_unexpected(link, &message, why);
    if (message.status)
        return eval_link_failure(link, &message, why);
    char *theirs;
    struct eval_difference d = {0};
    status = eval_link_read_text(link, &message, &theirs, why);
    bool same = !status && strcmp(theirs, settings) == 0;
    if (!status && !same)
        status = eval_difference_find(&d, theirs, settings, why);
    if (!status && !same)
        status = status_fail(why, STATUS_USAGE,
                             "%s has %s %s, rank 0 has %s; expected the same program, files and "
                             "options on all ranks",
                             link->name, *d.name ? d.name : "other settings", d.first, d.second);
    free(theirs);
    return status;
}

enum status eval_team_agree(struct eval_team *team, const char *settings, const atomic_bool *cancel,
                            struct status_why *why)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < team->n_links && !status; i++) {
        team->links[i].cancel[0] = cancel;
        status = agree(&team->links[i], settings, why);
    }
    return status;
}

enum status eval_team_ready(struct eval_team *team, enum status opened, const char *settings,
                            struct status_why *why)
{
    const char *text = opened ? why->text : settings;
    struct eval_part part = {text, strlen(text)};
    enum status status =
        eval_link_send(&team->links[0], EVAL_MESSAGE_READY, opened, &part, 1, NULL);
    if (status && eval_link_has_ended(&team->links[0]))
        return STATUS_OK;
    if (status && opened)
        return opened;
    return status ? status_fail(why, status, "rank 0 died, which ends the run") : STATUS_OK;
}

void eval_team_end(struct eval_team *team, enum status status)
{
    for (size_t i = 0; i < team->n_links && !team->ended; i++)
        if (team->links[i].fd >= 0)
            eval_link_send(&team->links[i], EVAL_MESSAGE_END, status, NULL, 0, NULL);
    team->ended = true;
}

void eval_team_close(struct eval_team *team)
{
    if (team->n_ranks && team->listener >= 0)
        close(team->listener);
    for (size_t i = 0; i < team->n_links; i++)
        eval_link_close(&team->links[i]);
    free(team->links);
    *team = (struct eval_team){.listener = -1};
}
