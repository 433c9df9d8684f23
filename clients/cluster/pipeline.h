/**
 * Layers divided among the ranks of a group: a pipeline. The first rank of a group stands for it:
 * it has the last layers, scores, and is a worker of rank 0's run (or is rank 0). The second has
 * the first layers and hears of batches from rank 0, some of them ahead, so that all ranks have
 * work; residual streams go from each to the next. Rank 0 has a link to everybody.
 */
#ifndef CLUSTER_PIPELINE_H
#define CLUSTER_PIPELINE_H

#include "clients/cluster/hop.h"
#include "clients/cluster/team.h"
#include "eval/streams.h"

/** Batches that are on their way through a group at most: each rank has one, and one is sent. */
static inline size_t cluster_pipe_depth(size_t n_shares)
{
    return n_shares > 1 ? 2 * n_shares : 1;
}

/** The share of a rank in its group of n_shares. */
static inline size_t cluster_pipe_share(size_t rank, size_t n_shares)
{
    return (rank + n_shares - 1) % n_shares;
}

/** What this process has of a pipeline. Zero-initialise; release with cluster_pipe_close. */
struct cluster_pipe {
    size_t i, n;                 /* its share of the layers: the i-th of n; n 0 or 1: all */
    size_t row_bytes;            /* of a token in the streams of all models */
    struct cluster_hop *enters;  /* what enters its layers; NULL: it embeds */
    struct cluster_hop *leaves;  /* where it goes from there; NULL: it scores */
    struct cluster_team in, out; /* pairs: with the rank that has the layers before, and the next */
    bool ended;                  /* rank 0 ended the run meanwhile */
};

/**
 * The source of streams with this pipe, which must outlive it: its layers and, once it is open,
 * what the hops bring and take.
 */
struct eval_stream_source cluster_pipe_source(struct cluster_pipe *pipe);

/**
 * Rank 0: let all ranks find the ones that have their next layers, and take its own place.
 * Fails: STATUS_DEVICE (a rank died), STATUS_IO, what another rank failed with, STATUS_CANCELLED.
 */
enum status cluster_pipe_meet(struct cluster_pipe *pipe, struct cluster_team *team, size_t n_shares,
                              struct status_why *why);
/**
 * Another rank. one_machine: all ranks are on it.
 * Fails: as cluster_pipe_meet; STATUS_CANCELLED also with pipe->ended.
 */
enum status cluster_pipe_join(struct cluster_pipe *pipe, struct cluster_link *zero, size_t rank,
                              size_t n_shares, bool one_machine, struct status_why *why);
/**
 * Open the streams of a pipe that has met, for batches of so many tokens. look: as in
 * struct cluster_hop_options.   Fails: STATUS_MEMORY.
 */
enum status cluster_pipe_open(struct cluster_pipe *pipe, size_t n_tokens, cluster_look_fn *look,
                              void *user, struct status_why *why);
/** Twice is allowed. It keeps its share. */
void cluster_pipe_close(struct cluster_pipe *pipe);

#endif
