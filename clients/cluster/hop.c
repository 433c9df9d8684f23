#include "clients/cluster/hop.h"

#include <stdlib.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/condition.h"

static const double look_seconds = 0.02;
static const double patience = 2; /* seconds: rank 0 tells why a connection broke */

static enum status receive(struct cluster_hop *s, struct status_why *why)
{
    struct cluster_link *link = s->options.link;
    struct cluster_message message;
    enum status status = cluster_link_receive(link, &message, why);
    if (status)
        return status;
    if (message.kind != CLUSTER_MESSAGE_STREAM || message.n_bytes < sizeof s->batch ||
        message.n_bytes - sizeof s->batch > s->options.n_bytes)
        return cluster_link_unexpected(link, &message, why);
    s->n_bytes = (size_t)message.n_bytes - sizeof s->batch;
    status = cluster_link_read(link, &s->batch, sizeof s->batch, why);
    return status ? status : cluster_link_read(link, s->values, s->n_bytes, why);
}

static enum status send_on(struct cluster_hop *s, struct status_why *why)
{
    const struct cluster_part parts[] = {{&s->batch, sizeof s->batch}, {s->values, s->n_bytes}};
    return cluster_link_send(s->options.link, CLUSTER_MESSAGE_STREAM, STATUS_OK, parts, 2, why);
}

/** The thread: a batch at a time, when it is its turn. */
static void *move(void *opaque)
{
    struct cluster_hop *s = opaque;
    struct status_why why = {""};
    enum status status = STATUS_OK;
    pthread_mutex_lock(&s->lock);
    while (!s->closed && !status) {
        if (!s->moving) {
            pthread_cond_wait(&s->turned, &s->lock);
            continue;
        }
        pthread_mutex_unlock(&s->lock);
        status = s->options.sends ? send_on(s, &why) : receive(s, &why);
        pthread_mutex_lock(&s->lock);
        s->status = status;
        s->why = why;
        s->moving = status;
        pthread_cond_broadcast(&s->turned);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

enum status cluster_hop_open(struct cluster_hop **out, const struct cluster_hop_options *options,
                             struct status_why *why)
{
    struct cluster_hop *s = *out = calloc(1, sizeof *s);
    if (s) {
        s->options = *options;
        s->moving = !options->sends;
        s->values = malloc(options->n_bytes);
    }
    if (!s || !s->values) {
        free(s);
        *out = NULL;
        return status_fail(why, STATUS_MEMORY, "no memory for %zu bytes of a residual stream",
                           options->n_bytes);
    }
    pthread_mutex_init(&s->lock, NULL);
    base_condition_init(&s->turned);
    if (pthread_create(&s->thread, NULL, move, s) != 0) {
        s->options.link = NULL; /* there is no thread to be ended */
        cluster_hop_close(s);
        *out = NULL;
        return status_fail(why, STATUS_MEMORY, "no thread can be started for a residual stream");
    }
    return STATUS_OK;
}

void cluster_hop_close(struct cluster_hop *s)
{
    if (!s)
        return;
    if (s->options.link) {
        pthread_mutex_lock(&s->lock);
        s->closed = true;
        pthread_cond_broadcast(&s->turned);
        pthread_mutex_unlock(&s->lock);
        shutdown(s->options.link->fd, SHUT_RDWR);
        pthread_join(s->thread, NULL);
    }
    pthread_cond_destroy(&s->turned);
    pthread_mutex_destroy(&s->lock);
    free(s->values);
    free(s);
}

enum status cluster_hop_await(struct cluster_hop *s, struct status_why *why)
{
    enum status status = STATUS_OK;
    double broke = 0;
    pthread_mutex_lock(&s->lock);
    while (s->moving && !status) {
        base_condition_wait(&s->turned, &s->lock, base_clock_seconds() + look_seconds);
        if (!s->moving)
            break;
        broke = s->status && broke == 0 ? base_clock_seconds() : broke;
        bool lost = s->options.link->lost;
        bool given_up = s->status && (!lost || base_clock_seconds() - broke > patience);
        pthread_mutex_unlock(&s->lock);
        status = s->options.look(s->options.user, why);
        if (!status && given_up)
            status = lost ? status_fail(why, s->status, "the connection to %s broke",
                                        s->options.link->name)
                          : status_fail(why, s->status, "%s", s->why.text);
        pthread_mutex_lock(&s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    return status;
}

void cluster_hop_pass(struct cluster_hop *s)
{
    pthread_mutex_lock(&s->lock);
    s->moving = true;
    pthread_cond_broadcast(&s->turned);
    pthread_mutex_unlock(&s->lock);
}
