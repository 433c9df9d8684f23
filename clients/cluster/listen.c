#include "clients/cluster/listen.h"

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/system/system.h"
#include "clients/cluster/exchange.h"

struct eval_listen {
    struct eval_dispatch *dispatch;
    const struct cluster_rank_crew *ranks;
    int end[2]; /* a pipe; a byte in it tells the thread to end */
    pthread_t thread;
};

/** Something came from a rank that only sends streams: its end, or what it failed with. */
static void hear(const struct eval_listen *l, struct cluster_link *link, size_t rank)
{
    struct eval_dispatch *d = l->dispatch;
    struct cluster_message message;
    struct status_why why = {""};
    enum status status = cluster_link_receive(link, &message, &why);
    if (!status && message.kind == CLUSTER_MESSAGE_FAILED)
        status = cluster_link_failure(link, &message, &why);
    else if (!status)
        status = cluster_link_unexpected(link, &message, &why);
    if (link->lost) {
        pthread_mutex_lock(&d->lock);
        status = cluster_remote_say_lost(l->ranks, d, rank, &why);
        pthread_mutex_unlock(&d->lock);
    }
    eval_dispatch_fail(d, status, &why);
}

static void *listen_to_all(void *opaque)
{
    struct eval_listen *l = opaque;
    const struct cluster_team *team = l->ranks->team;
    struct pollfd *about = calloc(team->n_ranks, sizeof *about);
    if (!about) {
        eval_dispatch_fail(l->dispatch, STATUS_MEMORY,
                           &(struct status_why){"no memory to listen to ranks"});
        return NULL;
    }
    about[0] = (struct pollfd){.fd = l->end[0], .events = POLLIN};
    for (size_t rank = 1; rank < team->n_ranks; rank++) {
        bool is_worker = rank % l->ranks->n_shares == 0;
        about[rank] =
            (struct pollfd){.fd = is_worker ? -1 : team->links[rank - 1].fd, .events = POLLIN};
    }
    size_t from = 0;
    while (from == 0 && !about[0].revents) {
        poll(about, team->n_ranks, -1);
        for (size_t rank = team->n_ranks - 1; rank > 0; rank--)
            from = about[rank].revents ? rank : from;
    }
    if (from)
        hear(l, &team->links[from - 1], from);
    free(about);
    return NULL;
}

enum status cluster_listen_open(struct eval_listen **out, struct eval_dispatch *d,
                                const struct cluster_rank_crew *ranks, struct status_why *why)
{
    struct eval_listen *l = *out = calloc(1, sizeof *l);
    if (l) {
        *l = (struct eval_listen){.dispatch = d, .ranks = ranks};
        bool piped = base_system_pipe(l->end) == 0;
        if (piped && pthread_create(&l->thread, NULL, listen_to_all, l) == 0)
            return STATUS_OK;
        if (piped) {
            close(l->end[0]);
            close(l->end[1]);
        }
    }
    free(l);
    *out = NULL;
    return status_fail(why, STATUS_MEMORY, "no thread can be started to listen to the ranks");
}

void cluster_listen_close(struct eval_listen *l)
{
    if (!l)
        return;
    (void)!write(l->end[1], "", 1);
    pthread_join(l->thread, NULL);
    close(l->end[0]);
    close(l->end[1]);
    free(l);
}
