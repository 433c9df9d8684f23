/**
 * The processes of a run. Rank 0 has a link to each of the others; each of them has one, to
 * rank 0. Rank 0 listens; where, reaches the others by whatever started them (MPI's broadcast).
 * The steps of a run: cluster_team_gather or cluster_team_join, cluster_team_agree or
 * cluster_team_ready, then eval_run on rank 0 and cluster_serve on the others, cluster_team_end.
 */
#ifndef CLUSTER_TEAM_H
#define CLUSTER_TEAM_H

#include "base/digest.h"
#include "clients/cluster/link.h"

enum { CLUSTER_TEAM_ADDRESSES = 16, CLUSTER_TEAM_HOST = 65 };
enum { CLUSTER_TEAM_SECONDS = 120 }; /* that ranks take at most to meet, unless told otherwise */

/** Where rank 0 listens. Plain bytes, the same for all. */
struct cluster_team_address {
    uint8_t token[BASE_SHA256_BYTES]; /* a process that connects must know it */
    char host[CLUSTER_TEAM_HOST];
    uint32_t addresses[CLUSTER_TEAM_ADDRESSES]; /* IPv4, as the network has them; 0: no more */
    uint16_t port;                              /* the same */
    uint16_t one_machine;                       /* it listens on the loopback address alone */
};

/** Zero-initialise; release with cluster_team_close. */
struct cluster_team {
    size_t rank, n_ranks;
    struct cluster_link *links; /* [n_links] */
    size_t n_links;             /* of rank 0: n_ranks - 1, that of rank k is links[k - 1]; else 1 */
    int listener;               /* of rank 0 until all are there, else -1 */
    struct cluster_team_address address;
    bool ended; /* the others were told that the run is over */
    struct cluster_link
        *heard; /* [n_heard]: cluster_team_gather ends when something comes over one */
    size_t n_heard;
};

/**
 * Rank 0: begin to listen, and fill in team->address. one_machine: nobody else need reach it.
 * Fails: STATUS_IO, STATUS_MEMORY.
 */
enum status cluster_team_listen(struct cluster_team *team, size_t n_ranks, bool one_machine,
                                struct status_why *why);
/**
 * Rank 0: wait until the others have connected, for so many seconds in which this process is not
 * stopped. A process that connects has five seconds to give its number, and none waits for another;
 * strangers are turned away.
 * Fails: STATUS_DEVICE (names the ranks that are missing), STATUS_CANCELLED (also by team->heard).
 */
enum status cluster_team_gather(struct cluster_team *team, double seconds,
                                const atomic_bool *cancel, struct status_why *why);
/**
 * Another rank: connect to rank 0, whose address is given, and wait for so many seconds until it
 * says welcome.   Fails: STATUS_DEVICE, STATUS_MEMORY.
 */
enum status cluster_team_join(struct cluster_team *team, size_t rank,
                              const struct cluster_team_address *address, double seconds,
                              struct status_why *why);

/**
 * Rank 0: compare everybody's settings, a JSON object, with its own.
 * Fails: STATUS_USAGE (names the rank, and what differs), what another rank failed with,
 * STATUS_CANCELLED.
 */
enum status cluster_team_agree(struct cluster_team *team, const char *settings,
                               const atomic_bool *cancel, struct status_why *why);
/**
 * Another rank: tell rank 0 its settings or, where `opened` is a failure, the sentence in why.
 * Fails: STATUS_DEVICE (rank 0 is gone without a word), `opened` in place of it.
 */
enum status cluster_team_ready(struct cluster_team *team, enum status opened, const char *settings,
                               struct status_why *why);

/** Rank 0: tell everybody, once, that the run is over, and what became of it. Waits for nobody. */
void cluster_team_end(struct cluster_team *team, enum status status);
/** Twice is allowed. */
void cluster_team_close(struct cluster_team *team);

#endif
