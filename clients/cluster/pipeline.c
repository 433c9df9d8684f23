#include "clients/cluster/pipeline.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "eval/run.h"
#include "kernels/kernels.h"

/** The rank of the same group that has share i. */
static size_t rank_of(size_t rank, size_t n_shares, size_t i)
{
    return rank - rank % n_shares + (i + 1) % n_shares;
}

static enum status send_address(struct cluster_link *link,
                                const struct cluster_team_address *address, struct status_why *why)
{
    const struct cluster_part part = {address, sizeof *address};
    return cluster_link_send(link, CLUSTER_MESSAGE_ADDRESS, STATUS_OK, &part, 1, why);
}

/** ended: set where the run's end came instead. */
static enum status receive_address(struct cluster_link *link, struct cluster_team_address *address,
                                   bool *ended, struct status_why *why)
{
    struct cluster_message message;
    enum status status = cluster_link_receive(link, &message, why);
    if (status)
        return status;
    if (message.kind == CLUSTER_MESSAGE_FAILED)
        return cluster_link_failure(link, &message, why);
    *ended = message.kind == CLUSTER_MESSAGE_END;
    if (*ended)
        return status_fail(why, STATUS_CANCELLED, "%s", "");
    if (message.kind != CLUSTER_MESSAGE_ADDRESS || message.n_bytes != sizeof *address)
        return cluster_link_unexpected(link, &message, why);
    return cluster_link_read(link, address, sizeof *address, why);
}

static void name_link(struct cluster_team *pair, size_t rank)
{
    snprintf(pair->links[0].name, sizeof pair->links[0].name, "rank %zu", rank);
}

/** Wait for the rank that has the layers before. */
static enum status gather(struct cluster_pipe *pipe, size_t rank, size_t n_shares,
                          const atomic_bool *cancel, struct status_why *why)
{
    size_t before = rank_of(rank, n_shares, pipe->i - 1);
    enum status status = cluster_team_gather(&pipe->in, CLUSTER_TEAM_SECONDS, cancel, why);
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
static enum status failed_early(const struct cluster_link *link, enum status status,
                                struct status_why *why)
{
    return status && link->lost
               ? status_fail(why, status, "%s died before it was given anything", link->name)
               : status;
}

/** Something came from another rank before there was anything to do: that it is gone, or why. */
static enum status hear_early(struct cluster_link *link, struct status_why *why)
{
    struct cluster_message message;
    enum status status = cluster_link_receive(link, &message, why);
    if (status)
        return failed_early(link, status, why);
    return message.kind == CLUSTER_MESSAGE_FAILED ? cluster_link_failure(link, &message, why)
                                                  : cluster_link_unexpected(link, &message, why);
}

/** Let the rank that has the layers before this one's find it. */
static enum status pass_address(struct cluster_pipe *pipe, struct cluster_team *team, size_t rank,
                                struct status_why *why)
{
    size_t n_shares = pipe->n, share = cluster_pipe_share(rank, n_shares);
    struct cluster_team_address address = pipe->in.address;
    enum status status = STATUS_OK;
    if (share == 0)
        return STATUS_OK;
    struct cluster_link *from = rank ? &team->links[rank - 1] : NULL;
    if (from)
        status = failed_early(from, receive_address(from, &address, &pipe->ended, why), why);
    struct cluster_link *to = &team->links[rank_of(rank, n_shares, share - 1) - 1];
    return status ? status : failed_early(to, send_address(to, &address, why), why);
}

enum status cluster_pipe_meet(struct cluster_pipe *pipe, struct cluster_team *team, size_t n_shares,
                              struct status_why *why)
{
    assert(team->links && pipe->i == n_shares - 1);
    enum status status = cluster_team_listen(&pipe->in, 2, team->address.one_machine, why);
    for (size_t rank = 0; rank < team->n_ranks && !status; rank++)
        status = pass_address(pipe, team, rank, why);
    if (status)
        return status;
    pipe->in.heard = team->links;
    pipe->in.n_heard = team->n_links;
    status = gather(pipe, 0, n_shares, team->links[0].cancel[0], why);
    for (size_t i = 0; i < team->n_links && status == STATUS_CANCELLED; i++)
        if (cluster_link_pending(&team->links[i]))
            status = hear_early(&team->links[i], why);
    return status;
}

enum status cluster_pipe_join(struct cluster_pipe *pipe, struct cluster_link *zero, size_t rank,
                              size_t n_shares, bool one_machine, struct status_why *why)
{
    enum status status = STATUS_OK;
    pipe->i = cluster_pipe_share(rank, n_shares);
    pipe->n = n_shares;
    if (pipe->i > 0) {
        status = cluster_team_listen(&pipe->in, 2, one_machine, why);
        pipe->in.heard = zero;
        pipe->in.n_heard = 1;
        if (!status)
            status = send_address(zero, &pipe->in.address, why);
    }
    if (pipe->i + 1 < n_shares && !status) {
        struct cluster_team_address address;
        size_t next = rank_of(rank, n_shares, pipe->i + 1);
        status = receive_address(zero, &address, &pipe->ended, why);
        if (!status && cluster_team_join(&pipe->out, 1, &address, CLUSTER_TEAM_SECONDS, why))
            status = status_fail(why, STATUS_DEVICE,
                                 "it cannot connect to rank %zu (%.64s), which has the next "
                                 "layers; the network between them is closed",
                                 next, address.host);
        if (!status)
            name_link(&pipe->out, next);
    }
    if (pipe->i > 0 && !status)
        status = gather(pipe, rank, n_shares, zero->cancel[0], why);
    return status;
}

enum status cluster_pipe_open(struct cluster_pipe *pipe, size_t n_tokens, cluster_look_fn *look,
                              void *user, struct status_why *why)
{
    struct cluster_hop_options options = {
        .n_bytes = n_tokens * pipe->row_bytes, .look = look, .user = user};
    enum status status = STATUS_OK;
    if (pipe->in.n_links) {
        options.link = &pipe->in.links[0];
        status = cluster_hop_open(&pipe->enters, &options, why);
    }
    if (pipe->out.n_links && !status) {
        options.link = &pipe->out.links[0];
        options.sends = true;
        status = cluster_hop_open(&pipe->leaves, &options, why);
    }
    return status;
}

void cluster_pipe_close(struct cluster_pipe *pipe)
{
    cluster_hop_close(pipe->enters);
    cluster_hop_close(pipe->leaves);
    pipe->enters = pipe->leaves = NULL;
    cluster_team_close(&pipe->in);
    cluster_team_close(&pipe->out);
}

/** The streams of a scorer on a pipe. */
struct piped {
    struct eval_streams streams;
    struct cluster_pipe *pipe;
};

static size_t stream_bytes(const struct eval_pass *pass)
{
    return pass->batch->n_tokens * model_residual_width(model_hparams(pass->model)) * sizeof(float);
}

/** What another process left of the batch is what enters the layers here. */
static enum status enter(struct eval_streams *streams, struct eval_pass *passes, size_t n_passes,
                         struct status_why *why)
{
    const struct cluster_pipe *pipe = ((const struct piped *)streams)->pipe;
    struct cluster_hop *in = pipe->enters;
    if (!in)
        return STATUS_OK;
    size_t n_expected = passes[0].batch->n_tokens * pipe->row_bytes;
    const char *at = (const char *)in->values;
    enum status status = STATUS_OK;
    if (in->n_bytes != n_expected)
        return status_fail(why, STATUS_DEVICE,
                           "%s sent %zu bytes of a batch's residual stream, expected %zu",
                           in->options.link->name, in->n_bytes, n_expected);
    for (size_t i = 0; i < n_passes && !status; i++) {
        struct model_layer_range layers;
        status = model_split(passes[i].model, pipe->n, pipe->i, &layers, why);
        passes[i].layer = layers.from;
        if (!status)
            status = kern_upload(passes[i].backend, passes[i].x, at, stream_bytes(&passes[i]), why);
        at += stream_bytes(&passes[i]);
    }
    cluster_hop_pass(in); /* the next one comes while this one is computed */
    return status;
}

/** All models are through: what left their layers goes to the process with the next ones. */
static enum status reach(struct eval_streams *streams, const struct eval_pass *passes,
                         size_t n_passes, size_t i, struct status_why *why)
{
    struct cluster_hop *out = ((const struct piped *)streams)->pipe->leaves;
    if (!out || i + 1 < n_passes)
        return STATUS_OK;
    enum status status = cluster_hop_await(out, why);
    if (status)
        return status;
    char *at = (char *)out->values;
    out->n_bytes = 0;
    for (size_t k = 0; k < n_passes && !status; k++) {
        size_t n = stream_bytes(&passes[k]);
        status = kern_download(passes[k].backend, at + out->n_bytes, passes[k].x, n, why);
        out->n_bytes += n;
    }
    return status;
}

static void close_piped(struct eval_streams *streams)
{
    free(streams);
}

static enum status open_piped(void *user, struct kern_backend *backend, struct eval_streams **out,
                              struct status_why *why)
{
    static const struct eval_streams_kind kind = {
        .enter = enter, .reach = reach, .close = close_piped};
    struct piped *p = calloc(1, sizeof *p);
    (void)backend;
    if (!p)
        return status_fail(why, STATUS_MEMORY, "no memory for streams");
    *p = (struct piped){.streams.kind = &kind, .pipe = user};
    *out = &p->streams;
    return STATUS_OK;
}

static enum status layers_of(void *user, const struct model *m, struct model_layer_range *out,
                             struct status_why *why)
{
    const struct cluster_pipe *pipe = user;
    return model_split(m, pipe->n ? pipe->n : 1, pipe->i, out, why);
}

/** A batch on its way here, and the threads that bring and take one. */
static double bytes(void *user, size_t n_tokens)
{
    const struct cluster_pipe *pipe = user;
    return 2 * EVAL_MEMORY_THREAD + (double)(pipe->row_bytes * n_tokens);
}

struct eval_stream_source cluster_pipe_source(struct cluster_pipe *pipe)
{
    return (struct eval_stream_source){
        .user = pipe, .layers = layers_of, .open = open_piped, .bytes = bytes};
}
