#include "eval/cluster/pipeline.h"

#include <assert.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "eval/cluster/remote.h"
#include "eval/run/worker.h"

/** The rank of the same group that has share i. */
static size_t rank_of(size_t rank, size_t n_shares, size_t i)
{
    return rank - rank % n_shares + (i + 1) % n_shares;
}

static enum status send_address(struct eval_link *link, const struct eval_team_address *address,
                                struct status_why *why)
{
    const struct eval_part part = {address, sizeof *address};
    return eval_link_send(link, EVAL_MESSAGE_ADDRESS, STATUS_OK, &part, 1, why);
}

/** ended: set where the run's end came instead. */
static enum status receive_address(struct eval_link *link, struct eval_team_address *address,
                                   bool *ended, struct status_why *why)
{
    struct eval_message message;
    enum status status = eval_link_receive(link, &message, why);
    if (status)
        return status;
    if (message.kind == EVAL_MESSAGE_FAILED)
        return eval_link_failure(link, &message, why);
    *ended = message.kind == EVAL_MESSAGE_END;
    if (*ended)
        return status_fail(why, STATUS_CANCELLED, "%s", "");
    if (message.kind != EVAL_MESSAGE_ADDRESS || message.n_bytes != sizeof *address)
        return eval_link_unexpected(link, &message, why);
    return eval_link_read(link, address, sizeof *address, why);
}

static void name_link(struct eval_team *pair, size_t rank)
{
    snprintf(pair->links[0].name, sizeof pair->links[0].name, "rank %zu", rank);
}

/** Wait for the rank that has the layers before. */
static enum status gather(struct eval_pipe *pipe, size_t rank, size_t n_shares,
                          const atomic_bool *cancel, struct status_why *why)
{
    size_t before = rank_of(rank, n_shares, pipe->share.i - 1);
    enum status status = eval_team_gather(&pipe->in, EVAL_TEAM_SECONDS, cancel, why);
    if (status == STATUS_DEVICE)
        return status_fail(why, status,
                           "rank %zu, which has the layers before, did not connect; the network "
                           "between them is closed",
                           before);
    if (!status)
        name_link(&pipe->in, before);
    return status;
}

/** A failure of rank 0's link to another, which has nothing to do yet. */
static enum status failed_early(const struct eval_link *link, enum status status,
                                struct status_why *why)
{
    return status && link->lost
               ? status_fail(why, status, "%s died before it was given anything", link->name)
               : status;
}

/** Something came from another rank before there was anything to do: that it is gone, or why. */
static enum status hear_early(struct eval_link *link, struct status_why *why)
{
    struct eval_message message;
    enum status status = eval_link_receive(link, &message, why);
    if (status)
        return failed_early(link, status, why);
    return message.kind == EVAL_MESSAGE_FAILED ? eval_link_failure(link, &message, why)
                                               : eval_link_unexpected(link, &message, why);
}

/** Let the rank that has the layers before this one's find it. */
static enum status pass_address(struct eval_pipe *pipe, struct eval_team *team, size_t rank,
                                struct status_why *why)
{
    size_t n_shares = pipe->share.n, share = eval_pipe_share(rank, n_shares);
    struct eval_team_address address = pipe->in.address;
    enum status status = STATUS_OK;
    if (share == 0)
        return STATUS_OK;
    struct eval_link *from = rank ? &team->links[rank - 1] : NULL;
    if (from)
        status = failed_early(from, receive_address(from, &address, &pipe->ended, why), why);
    struct eval_link *to = &team->links[rank_of(rank, n_shares, share - 1) - 1];
    return status ? status : failed_early(to, send_address(to, &address, why), why);
}

enum status eval_pipe_meet(struct eval_pipe *pipe, struct eval_team *team, size_t n_shares,
                           struct status_why *why)
{
    pipe->share = (struct eval_share){.i = n_shares - 1, .n = n_shares};
    enum status status = eval_team_listen(&pipe->in, 2, team->address.one_machine, why);
    for (size_t rank = 0; rank < team->n_ranks && !status; rank++)
        status = pass_address(pipe, team, rank, why);
    assert(team->links);
    if (status)
        return status;
    pipe->in.heard = team->links;
    pipe->in.n_heard = team->n_links;
    status = gather(pipe, 0, n_shares, team->links[0].cancel[0], why);
    for (size_t i = 0; i < team->n_links && status == STATUS_CANCELLED; i++)
        if (eval_link_pending(&team->links[i]))
            status = hear_early(&team->links[i], why);
    return status;
}

enum status eval_pipe_join(struct eval_pipe *pipe, struct eval_link *zero, size_t rank,
                           size_t n_shares, bool one_machine, struct status_why *why)
{
    enum status status = STATUS_OK;
    struct eval_share *share = &pipe->share;
    *share = (struct eval_share){.i = eval_pipe_share(rank, n_shares), .n = n_shares};
    if (share->i > 0) {
        status = eval_team_listen(&pipe->in, 2, one_machine, why);
        pipe->in.heard = zero;
        pipe->in.n_heard = 1;
        if (!status)
            status = send_address(zero, &pipe->in.address, why);
    }
    if (share->i + 1 < n_shares && !status) {
        struct eval_team_address address;
        size_t next = rank_of(rank, n_shares, share->i + 1);
        status = receive_address(zero, &address, &pipe->ended, why);
        if (!status && eval_team_join(&pipe->out, 1, &address, EVAL_TEAM_SECONDS, why))
            status = status_fail(why, STATUS_DEVICE,
                                 "it cannot connect to rank %zu (%.64s), which has the next "
                                 "layers; the network between them is closed",
                                 next, address.host);
        if (!status)
            name_link(&pipe->out, next);
    }
    if (share->i > 0 && !status)
        status = gather(pipe, rank, n_shares, zero->cancel[0], why);
    return status;
}

enum status eval_pipe_open(struct eval_pipe *pipe, size_t n_bytes, eval_look_fn *look, void *user,
                           struct status_why *why)
{
    struct eval_hop_options options = {.n_bytes = n_bytes, .look = look, .user = user};
    enum status status = STATUS_OK;
    if (pipe->in.n_links) {
        options.link = &pipe->in.links[0];
        status = eval_hop_open(&pipe->share.in, &options, why);
    }
    if (pipe->out.n_links && !status) {
        options.link = &pipe->out.links[0];
        options.sends = true;
        status = eval_hop_open(&pipe->share.out, &options, why);
    }
    return status;
}

void eval_pipe_close(struct eval_pipe *pipe)
{
    eval_hop_close(pipe->share.in);
    eval_hop_close(pipe->share.out);
    pipe->share.in = pipe->share.out = NULL;
    eval_team_close(&pipe->in);
    eval_team_close(&pipe->out);
}

/** Something came from a rank that only sends streams: its end, or what it failed with. */
static void hear(struct eval_dispatch *d, struct eval_link *link, size_t rank)
{
    struct eval_message message;
    struct status_why why = {""};
    enum status status = eval_link_receive(link, &message, &why);
    if (!status && message.kind == EVAL_MESSAGE_FAILED)
        status = eval_link_failure(link, &message, &why);
    else if (!status)
        status = eval_link_unexpected(link, &message, &why);
    if (link->lost) {
        pthread_mutex_lock(&d->lock);
        status = eval_remote_say_lost(&d->workers[rank / d->models->share.n], link,
                                      eval_pipe_share(rank, d->models->share.n), &why);
        pthread_mutex_unlock(&d->lock);
    }
    eval_dispatch_fail(d, status, &why);
}

static void *watch(void *opaque)
{
    struct eval_watch *w = opaque;
    struct eval_dispatch *d = w->dispatch;
    const struct eval_team *team = d->options->team;
    struct pollfd *about = calloc(team->n_ranks, sizeof *about);
    if (!about) {
        eval_dispatch_fail(d, STATUS_MEMORY, &(struct status_why){"no memory to watch ranks"});
        return NULL;
    }
    about[0] = (struct pollfd){.fd = w->event, .events = POLLIN};
    for (size_t rank = 1; rank < team->n_ranks; rank++) {
        bool is_worker = rank % d->models->share.n == 0;
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
        hear(d, &team->links[from - 1], from);
    free(about);
    return NULL;
}

enum status eval_watch_begin(struct eval_watch *w, struct eval_dispatch *d, struct status_why *why)
{
    *w = (struct eval_watch){.event = -1};
    if (!eval_share_splits(&d->models->share))
        return STATUS_OK;
    w->event = eventfd(0, EFD_CLOEXEC);
    if (w->event >= 0) {
        w->dispatch = d;
        if (pthread_create(&w->thread, NULL, watch, w) == 0)
            return STATUS_OK;
        close(w->event);
    }
    w->dispatch = NULL;
    return status_fail(why, STATUS_MEMORY, "no thread can be started to watch the ranks");
}

void eval_watch_end(struct eval_watch *w)
{
    if (!w->dispatch)
        return;
    (void)eventfd_write(w->event, 1);
    pthread_join(w->thread, NULL);
    close(w->event);
}
