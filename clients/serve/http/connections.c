#include "clients/serve/http/connections.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/condition.h"

static const double look_seconds = 0.25;

struct serve_connections {
    struct serve_connections_options options;
    pthread_t watcher;
    pthread_mutex_t lock; /* of the rest */
    pthread_cond_t closes;
    bool closing;
    unsigned n_placed;
    struct serve_http_connection *first; /* the newest */
};

/** An address as IPv6 has it. One network of IPv6 is one client: it has all addresses in there. */
static void find_address(uint8_t out[16], int fd)
{
    struct sockaddr_storage peer = {0};
    socklen_t n = sizeof peer;
    memset(out, 0, 16);
    if (getpeername(fd, (struct sockaddr *)&peer, &n) != 0)
        return;
    if (peer.ss_family == AF_INET) {
        out[10] = out[11] = 0xFF;
        memcpy(out + 12, &((const struct sockaddr_in *)&peer)->sin_addr, 4);
    } else if (peer.ss_family == AF_INET6) {
        const struct in6_addr *v6 = &((const struct sockaddr_in6 *)&peer)->sin6_addr;
        memcpy(out, v6, IN6_IS_ADDR_V4MAPPED(v6) ? 16 : 8);
    }
}

/* Under the lock. */

/** Its thread then reads that it is closed. When it closes it, a client that still sends is told.
 */
static void cut(struct serve_http_connection *c)
{
    const struct linger reset = {.l_onoff = 1};
    c->is_cut = true;
    setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    shutdown(c->fd, SHUT_RDWR);
}

/** Whether it can be cut for others: it waits since then. One that is answered has no deadline. */
static bool can_go(const struct serve_http_connection *c, double since)
{
    return !c->is_cut && !c->has_place && c->deadline > 0 && c->since <= since;
}

static bool same_address(const struct serve_http_connection *a,
                         const struct serve_http_connection *b)
{
    return memcmp(a->address, b->address, sizeof a->address) == 0;
}

/** How many that can go have its address. */
static unsigned count_alike(const struct serve_connections *all,
                            const struct serve_http_connection *of, double since)
{
    unsigned n = 0;
    for (const struct serve_http_connection *c = all->first; c; c = c->next)
        n += can_go(c, since) && same_address(c, of);
    return n;
}

/** The connection that has waited longest of the address that has most of those that can go; NULL:
 * none can. */
static struct serve_http_connection *find_worst(const struct serve_connections *all, double since)
{
    struct serve_http_connection *worst = NULL;
    unsigned most = 0;
    for (struct serve_http_connection *c = all->first; c; c = c->next) {
        if (!can_go(c, since))
            continue;
        unsigned n = worst && same_address(c, worst) ? most : count_alike(all, c, since);
        if (n > most || (n == most && c->since <= worst->since)) {
            most = n;
            worst = c;
        }
    }
    return worst;
}

static void make_room(struct serve_connections *all, double now)
{
    const struct serve_connections_options *o = &all->options;
    struct serve_http_connection *worst;
    unsigned n = 0;
    for (const struct serve_http_connection *c = all->first; c; c = c->next)
        n += !c->is_cut;
    while (n > o->n_places && (worst = find_worst(all, n > o->n_most ? now : now - o->patience))) {
        cut(worst);
        n--;
    }
}

/** The thread: cuts connections whose time is over, and those that others need the place of. */
static void *watch(void *user)
{
    struct serve_connections *all = user;
    pthread_mutex_lock(&all->lock);
    while (!all->closing) {
        double now = base_clock_seconds();
        for (struct serve_http_connection *c = all->first; c; c = c->next)
            if (!c->is_cut && c->deadline > 0 && c->deadline < now)
                cut(c);
        make_room(all, now);
        base_condition_wait(&all->closes, &all->lock, now + look_seconds);
    }
    pthread_mutex_unlock(&all->lock);
    return NULL;
}

enum status serve_connections_open(struct serve_connections **out,
                                   const struct serve_connections_options *options,
                                   struct status_why *why)
{
    struct serve_connections *all = calloc(1, sizeof *all);
    *out = NULL;
    if (!all)
        return status_fail(why, STATUS_MEMORY, "no memory for connections");
    all->options = *options;
    pthread_mutex_init(&all->lock, NULL);
    base_condition_init(&all->closes);
    if (pthread_create(&all->watcher, NULL, watch, all) != 0) {
        pthread_cond_destroy(&all->closes);
        pthread_mutex_destroy(&all->lock);
        free(all);
        return status_fail(why, STATUS_DEVICE, "the system refuses a thread");
    }
    *out = all;
    return STATUS_OK;
}

void serve_connections_close(struct serve_connections *all)
{
    if (!all)
        return;
    pthread_mutex_lock(&all->lock);
    all->closing = true;
    pthread_cond_broadcast(&all->closes);
    pthread_mutex_unlock(&all->lock);
    pthread_join(all->watcher, NULL);
    pthread_cond_destroy(&all->closes);
    pthread_mutex_destroy(&all->lock);
    free(all);
}

struct serve_http_connection *serve_connection_enter(struct serve_connections *all, int fd)
{
    struct serve_http_connection *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->fd = fd;
    c->among = all;
    find_address(c->address, fd);
    pthread_mutex_lock(&all->lock);
    c->since = base_clock_seconds();
    c->deadline = c->since + all->options.seconds;
    c->next = all->first;
    all->first = c;
    make_room(all, c->since);
    pthread_mutex_unlock(&all->lock);
    return c;
}

/** Under the lock. */
static void give_place_back(struct serve_http_connection *c)
{
    c->among->n_placed -= c->has_place;
    c->has_place = false;
}

void serve_connection_leave(struct serve_http_connection *c)
{
    if (!c)
        return;
    struct serve_connections *all = c->among;
    pthread_mutex_lock(&all->lock);
    struct serve_http_connection **at = &all->first;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    give_place_back(c);
    pthread_mutex_unlock(&all->lock);
    free(c);
}

bool serve_connection_take_place(struct serve_http_connection *c)
{
    struct serve_connections *all = c->among;
    pthread_mutex_lock(&all->lock);
    if (!c->has_place && all->n_placed < all->options.n_places) {
        c->has_place = true;
        all->n_placed++;
    }
    bool has_place = c->has_place;
    pthread_mutex_unlock(&all->lock);
    return has_place;
}

void serve_connection_wait(struct serve_http_connection *c)
{
    pthread_mutex_lock(&c->among->lock);
    give_place_back(c);
    c->since = base_clock_seconds();
    c->deadline = c->since + c->among->options.seconds;
    pthread_mutex_unlock(&c->among->lock);
}

void serve_connection_limit(struct serve_http_connection *c, double seconds)
{
    pthread_mutex_lock(&c->among->lock);
    c->deadline = seconds > 0 ? base_clock_seconds() + seconds : 0;
    pthread_mutex_unlock(&c->among->lock);
}

void serve_connection_finish(struct serve_http_connection *c, double seconds)
{
    char unread[4096];
    struct pollfd about = {.fd = c->fd, .events = POLLIN};
    serve_connection_limit(c, seconds);
    shutdown(c->fd, SHUT_WR);
    while (poll(&about, 1, -1) > 0 && recv(c->fd, unread, sizeof unread, 0) > 0)
        ;
}
