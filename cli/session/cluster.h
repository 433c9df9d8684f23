/** The processes that share a run, where mpirun or srun started several. */
#ifndef CLI_SESSION_CLUSTER_H
#define CLI_SESSION_CLUSTER_H

#include "cli/options/common.h"
#include "clients/cluster/remote.h"

/** Indices into the words of --mpi. */
enum cli_mpi { CLI_MPI_AUTO, CLI_MPI_OFF };

/** This process among them; alone: rank 0 of 1, without a team. */
struct cli_cluster {
    size_t rank, n_ranks;
    size_t local_rank; /* among those of this machine */
    size_t n_shares;   /* of the layers, by --split: a group of so many ranks; 1: none */
    struct cluster_team team;
    struct cluster_rank_crew ranks; /* of rank 0 */
};

/** As cli_cluster_join left it. */
struct cli_cluster *cli_cluster(void);

/**
 * Find the other processes and connect to them; nothing happens where this one was started alone,
 * or the second time. MPI is loaded, asked, and left again. Ranks but 0 are quiet from now on.
 * MPI has settings->mpi_wait seconds, then the process ends (cli/process/deadline.h); so many again
 * have the ranks to connect.
 * Fails: STATUS_UNSUPPORTED (there is no library for this MPI), STATUS_DEVICE, STATUS_MEMORY.
 */
enum status cli_cluster_join(const struct cli_machine_settings *settings, struct status_why *why);

/**
 * Check that this process was started alone, for a command that shares no work. ASSAY_MPI=off lets
 * each of several evaluate by itself. what: "a draft", for the sentence.   Fails: STATUS_USAGE.
 */
enum status cli_cluster_alone(const char *what, struct status_why *why);

/**
 * Take what --split says (NULL: nothing): cli_cluster()->n_shares.
 * Fails: STATUS_USAGE (also: there are no other processes; these are no whole groups).
 */
enum status cli_cluster_split(const char *split, struct status_why *why);

#endif
