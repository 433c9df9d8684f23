/* How the ranks of a team find each other: rank 0 listens, the others connect to it. */
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
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/system/system.h"
#include "clients/cluster/team.h"

enum {
    LOOK_MS = 250,
    CONNECT_MS = 5000,
    GONE_MS = 30 * 1000, /* after so long without a sign of life a machine counts as gone */
    N_CALLERS = 64
};
static const double greeting_seconds = 5; /* until a connection has said who it is */

/** What a rank says first. */
struct greeting {
    uint8_t token[BASE_SHA256_BYTES];
    uint32_t rank;
    uint32_t process;
    char host[CLUSTER_TEAM_HOST];
};

/** A connection that has not yet said who it is. */
struct caller {
    int fd;
    double until; /* it is waited for */
    size_t n_read;
    struct hello {
        struct cluster_message head;
        struct greeting greeting;
    } hello; /* as it comes */
};
enum { HELLO_BYTES = offsetof(struct hello, greeting) + sizeof(struct greeting) };

/** Connections that wait at the same time: none delays another. */
struct door {
    struct cluster_team *team;
    struct caller callers[N_CALLERS]; /* [n]: in the order in which they came */
    size_t n;
};

static void own_host(char host[CLUSTER_TEAM_HOST])
{
    if (gethostname(host, CLUSTER_TEAM_HOST) != 0)
        snprintf(host, CLUSTER_TEAM_HOST, "?");
    host[CLUSTER_TEAM_HOST - 1] = '\0';
}

/**
 * A machine that loses its power says nothing: after half a minute it counts as gone. That is so
 * while nothing is on its way to it; on the side that listens, which sends so little that it never
 * has to wait for a reader, also then.
 */
static void prepare_socket(int fd, bool listens)
{
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    base_system_end_when_gone(fd, GONE_MS, listens);
}

/** All IPv4 addresses of this machine that others can reach. */
static void list_addresses(struct cluster_team_address *out)
{
    struct ifaddrs *all = NULL;
    size_t n = 0;
    if (getifaddrs(&all) != 0)
        return;
    for (const struct ifaddrs *i = all; i && n < CLUSTER_TEAM_ADDRESSES; i = i->ifa_next) {
        struct sockaddr_in address;
        bool up = (i->ifa_flags & IFF_UP) && !(i->ifa_flags & IFF_LOOPBACK);
        if (!up || !i->ifa_addr || i->ifa_addr->sa_family != AF_INET)
            continue;
        memcpy(&address, i->ifa_addr, sizeof address);
        out->addresses[n++] = address.sin_addr.s_addr;
    }
    freeifaddrs(all);
}

enum status cluster_team_listen(struct cluster_team *team, size_t n_ranks, bool one_machine,
                                struct status_why *why)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(one_machine ? INADDR_LOOPBACK : INADDR_ANY)};
    socklen_t length = sizeof at;
    struct cluster_team_address *address = &team->address;
    *team = (struct cluster_team){.n_ranks = n_ranks, .listener = -1};
    if (base_array_new(team->links, n_ranks, "ranks", why))
        return STATUS_MEMORY;
    team->n_links = n_ranks - 1;
    for (size_t i = 0; i < team->n_links; i++)
        team->links[i].fd = -1;
    team->listener = base_system_socket(AF_INET, false);
    if (team->listener < 0 || bind(team->listener, (struct sockaddr *)&at, sizeof at) != 0 ||
        listen(team->listener, SOMAXCONN) != 0 ||
        getsockname(team->listener, (struct sockaddr *)&at, &length) != 0 ||
        getentropy(address->token, sizeof address->token) != 0)
        return status_fail(why, STATUS_IO, "rank 0 cannot listen for the others: %s",
                           strerror(errno));
    address->port = at.sin_port;
    address->one_machine = one_machine;
    own_host(address->host);
    if (!one_machine)
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

static bool is_expected(const struct cluster_team *team, const struct hello *hello)
{
    const struct greeting *g = &hello->greeting;
    return hello->head.kind == CLUSTER_MESSAGE_GREETING && hello->head.n_bytes == sizeof *g &&
           same_token(g->token, team->address.token) && g->rank > 0 && g->rank < team->n_ranks &&
           team->links[g->rank - 1].fd < 0;
}

/** The connection of a rank becomes its link. */
static void admit(struct cluster_team *team, int fd, const struct greeting *g)
{
    struct cluster_link *link = &team->links[g->rank - 1];
    char name[sizeof link->name];
    snprintf(name, sizeof name, "rank %u (%.64s, process %u)", g->rank, g->host, g->process);
    prepare_socket(fd, true);
    cluster_link_open(link, fd, name);
    if (cluster_link_send(link, CLUSTER_MESSAGE_WELCOME, STATUS_OK, NULL, 0, NULL))
        cluster_link_close(link);
}

static void forget(struct door *door, size_t i)
{
    door->n--;
    memmove(&door->callers[i], &door->callers[i + 1], (door->n - i) * sizeof *door->callers);
}

static void turn_away(struct door *door, size_t i)
{
    close(door->callers[i].fd);
    forget(door, i);
}

/** Read on what a caller says. Who turns out to be a stranger is turned away. */
static void hear(struct door *door, size_t i)
{
    struct caller *c = &door->callers[i];
    ssize_t n = recv(c->fd, (char *)&c->hello + c->n_read, HELLO_BYTES - c->n_read, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return;
    c->n_read += n > 0 ? (size_t)n : 0;
    if (n > 0 && c->n_read < HELLO_BYTES)
        return;
    if (n <= 0 || !is_expected(door->team, &c->hello)) {
        turn_away(door, i);
        return;
    }
    admit(door->team, c->fd, &c->hello.greeting);
    forget(door, i);
}

/** One more caller. Where there is no room, the one that has been silent for longest has to go. */
static void let_in(struct door *door)
{
    int fd = base_system_accept(door->team->listener, false);
    bool full = door->n == N_CALLERS || (fd < 0 && (errno == EMFILE || errno == ENFILE));
    if (full && door->n)
        turn_away(door, 0);
    if (fd >= 0)
        door->callers[door->n++] =
            (struct caller){.fd = fd, .until = base_clock_seconds() + greeting_seconds};
}

/** Wait a little, and serve the connections that have come. */
static void attend(struct door *door)
{
    struct pollfd about[1 + N_CALLERS];
    about[0] = (struct pollfd){.fd = door->team->listener, .events = POLLIN};
    for (size_t i = 0; i < door->n; i++)
        about[1 + i] = (struct pollfd){.fd = door->callers[i].fd, .events = POLLIN};
    if (poll(about, 1 + door->n, LOOK_MS) < 0)
        return; /* a signal */
    double now = base_clock_seconds();
    for (size_t i = door->n; i-- > 0;)
        if (about[1 + i].revents)
            hear(door, i);
        else if (now > door->callers[i].until)
            turn_away(door, i);
    if (about[0].revents)
        let_in(door);
}

static bool is_missing(const struct cluster_team *team, size_t rank)
{
    return team->links[rank - 1].fd < 0;
}

static bool are_all_there(const struct cluster_team *team)
{
    size_t rank = 1;
    while (rank < team->n_ranks && !is_missing(team, rank))
        rank++;
    return rank == team->n_ranks;
}

/** "1, 4 to 6": who has not connected. Returns how many. */
static size_t list_missing(const struct cluster_team *team, char *out, size_t size)
{
    size_t n = 0, used = 0;
    for (size_t from = 1, to; from < team->n_ranks; from = to + 1) {
        for (to = from; to < team->n_ranks && is_missing(team, to);)
            to++;
        if (to == from)
            continue;
        const char *comma = n ? ", " : "";
        n += to - from;
        if (used + 64 > size)
            continue;
        bool several = to - from > 1;
        int added = several ? snprintf(out + used, size - used, "%s%zu to %zu", comma, from, to - 1)
                            : snprintf(out + used, size - used, "%s%zu", comma, from);
        used += (size_t)added;
        if (used + 64 > size)
            snprintf(out + used, size - used, ", ...");
    }
    return n;
}

static bool is_over(const struct cluster_team *team, const atomic_bool *cancel)
{
    bool over = cancel && atomic_load(cancel);
    for (size_t i = 0; i < team->n_heard && !over; i++)
        over = cluster_link_pending(&team->heard[i]);
    return over;
}

static enum status gather(struct door *door, double seconds, const atomic_bool *cancel,
                          struct status_why *why)
{
    const struct cluster_team *team = door->team;
    double left = seconds, before = base_clock_seconds();
    while (!are_all_there(team)) {
        attend(door);
        if (is_over(team, cancel))
            return status_fail(why, STATUS_CANCELLED, "%s", "");
        double now = base_clock_seconds();
        left -= now - before < 1 ? now - before : 1; /* as long as this process is not stopped */
        before = now;
        if (left > 0)
            continue;
        char missing[256];
        size_t n_missing = list_missing(team, missing, sizeof missing);
        return status_fail(why, STATUS_DEVICE,
                           "rank%s %s of %zu did not connect to rank 0 (%s, port %u) within %g s; "
                           "%s, or the network between them is closed",
                           status_plural(n_missing), missing, team->n_ranks, team->address.host,
                           ntohs(team->address.port), seconds,
                           n_missing > 1 ? "they died or are stopped" : "it died or is stopped");
    }
    return STATUS_OK;
}

enum status cluster_team_gather(struct cluster_team *team, double seconds,
                                const atomic_bool *cancel, struct status_why *why)
{
    struct door door = {.team = team};
    enum status status = gather(&door, seconds, cancel, why);
    while (door.n)
        turn_away(&door, 0);
    if (status)
        return status;
    close(team->listener);
    team->listener = -1;
    return STATUS_OK;
}

/** A socket that is connected within some seconds, or -1. */
static int connect_to(uint32_t ip, uint16_t port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = ip, .sin_port = port};
    int fd = base_system_socket(AF_INET, false), error = 0, n;
    struct pollfd about = {.fd = fd, .events = POLLOUT};
    socklen_t length = sizeof error;
    bool begun =
        fd >= 0 && (connect(fd, (struct sockaddr *)&to, sizeof to) == 0 || errno == EINPROGRESS);
    do
        n = begun ? poll(&about, 1, CONNECT_MS) : 0;
    while (n < 0 && errno == EINTR);
    if (n > 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 &&
        (error == 0 || error == ECONNRESET)) /* it was, and somebody hung up */
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/** Greet the other end of a connection. Returns whether that is rank 0. */
static bool greet(struct cluster_link *link, int fd, const struct greeting *g, double until)
{
    struct cluster_part part = {g, sizeof *g};
    struct cluster_message message = {0};
    prepare_socket(fd, false);
    cluster_link_open(link, fd, "rank 0");
    link->until = until;
    bool welcome = !cluster_link_send(link, CLUSTER_MESSAGE_GREETING, STATUS_OK, &part, 1, NULL) &&
                   !cluster_link_receive(link, &message, NULL) &&
                   message.kind == CLUSTER_MESSAGE_WELCOME && message.n_bytes == 0;
    link->until = 0;
    if (!welcome)
        cluster_link_close(link);
    return welcome;
}

/**
 * Try each address once. others: out, whether somebody was there who is not rank 0; as before where
 * the time was over.
 */
static bool try_all(struct cluster_team *team, const struct greeting *g, double until, bool *others)
{
    const struct cluster_team_address *address = &team->address;
    uint32_t all[1 + CLUSTER_TEAM_ADDRESSES];
    size_t n = 0;
    if (address->one_machine || strcmp(g->host, address->host) == 0)
        all[n++] = htonl(INADDR_LOOPBACK);
    for (size_t i = 0; i < CLUSTER_TEAM_ADDRESSES && address->addresses[i]; i++)
        all[n++] = address->addresses[i];
    bool any = false;
    for (size_t i = 0; i < n && base_clock_seconds() < until; i++) {
        int fd = connect_to(all[i], address->port);
        if (fd >= 0 && greet(&team->links[0], fd, g, until))
            return true;
        any |= fd >= 0;
    }
    *others = any || (*others && base_clock_seconds() >= until);
    return false;
}

enum status cluster_team_join(struct cluster_team *team, size_t rank,
                              const struct cluster_team_address *address, double seconds,
                              struct status_why *why)
{
    static const struct timespec pause = {.tv_nsec = 100 * 1000 * 1000};
    struct greeting g = {.rank = (uint32_t)rank, .process = (uint32_t)getpid()};
    double until = base_clock_seconds() + seconds;
    bool others = false;
    *team = (struct cluster_team){.rank = rank, .listener = -1, .address = *address};
    memcpy(g.token, address->token, sizeof g.token);
    own_host(g.host);
    if (base_array_new(team->links, 1, "connection", why))
        return STATUS_MEMORY;
    team->links[0].fd = -1;
    team->n_links = 1;
    bool joined = try_all(team, &g, until, &others);
    while (!joined && others && base_clock_seconds() < until) {
        nanosleep(&pause, NULL); /* it may have had too many callers at once */
        joined = try_all(team, &g, until, &others);
    }
    return joined ? STATUS_OK
                  : status_fail(why, STATUS_DEVICE,
                                "rank %zu (%s) cannot connect to rank 0 (%.64s, port %u): %s", rank,
                                g.host, address->host, ntohs(address->port),
                                others ? "who is there does not answer as rank 0 does"
                                       : "it died, or the network between them is closed");
}
