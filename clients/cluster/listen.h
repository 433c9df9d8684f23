/** Rank 0 listens to the ranks that are no workers, so that their failures end the run. */
#ifndef CLUSTER_LISTEN_H
#define CLUSTER_LISTEN_H

#include "clients/cluster/remote.h"
#include "eval/run.h"

struct eval_listen;

/** While the workers of a run work. Fails: STATUS_MEMORY. */
enum status cluster_listen_open(struct eval_listen **out, struct eval_dispatch *d,
                                const struct cluster_rank_crew *ranks, struct status_why *why);
/** What it heard of is the dispatch's by then. NULL is allowed. */
void cluster_listen_close(struct eval_listen *listen);

#endif
