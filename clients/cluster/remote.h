/**
 * Batches that another process evaluates: what rank 0 and the others tell each other. A rank is a
 * worker of rank 0's run (eval/run/worker.h), whose batches go over a link. It asks by being free,
 * so a slow machine takes fewer.
 */
#ifndef CLUSTER_REMOTE_H
#define CLUSTER_REMOTE_H

#include "clients/cluster/pipeline.h"
#include "eval/run.h"

/* On rank 0. */

/** The ranks of a run: a crew. */
struct cluster_rank_crew {
    struct cluster_team *team;
    size_t n_shares;          /* of the layers, by groups of so many ranks; 1: each rank has all */
    struct cluster_pipe pipe; /* this process's part, where layers are divided */
    struct eval_crew crew;
    struct eval_stream_source streams;
    struct eval_feed *feed;     /* of the group of rank 0; NULL: layers are not divided */
    struct eval_listen *listen; /* to ranks that are no workers; NULL: there are none */
};

/**
 * Let the team's other ranks be workers of the models' run, in groups of n_shares that divide the
 * layers; models: without a source of streams, if n_shares is above 1. Run after run is allowed.
 * ranks: zero-initialised, must outlive the run; team: borrowed.
 */
void cluster_rank_crew_join(struct cluster_rank_crew *ranks, struct cluster_team *team,
                            size_t n_shares, struct eval_models *models);

/* On the others. */

/**
 * Evaluate what rank 0 sends, until it ends the run. models: as rank 0's, but for its crew, the
 * streams of divided layers and sinks that are rank 0's alone. STATUS_OK also where rank 0 ended
 * the run because something failed, or was told what failed here. Fails: STATUS_DEVICE (rank 0 is
 * gone).
 */
enum status cluster_serve(struct eval_units *units, const struct eval_models *models,
                          struct cluster_link *link, struct status_why *why);

#endif
