#include "cli/session/cluster.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/output/say.h"
#include "cli/session/faults.h"
#include "cli/session/signals.h"

/* mpi/assay_mpi.c */
typedef int begin_fn(int *rank, int *size, int *local_rank);
typedef int share_fn(void *bytes, int n_bytes);

struct library {
    char path[PATH_MAX + sizeof "../lib/assay/assay-mpi-openmpi.so"];
    begin_fn *begin;
    share_fn *share;
};

static struct cli_cluster cluster = {.n_ranks = 1, .n_shares = 1};

struct cli_cluster *cli_cluster(void)
{
    return &cluster;
}

/* How many processes were started together; *mpis: which libraries are likely to know of it. */
static long n_started(const char *mpis[2])
{
    static const struct {
        const char *size, *mpis[2];
    } launchers[] = {
        {"OMPI_COMM_WORLD_SIZE", {"openmpi", "mpich"}}, /* Open MPI's mpirun */
        {"PMI_SIZE", {"mpich", "openmpi"}},             /* MPICH's, and srun --mpi=pmi2 */
        {"SLURM_STEP_NUM_TASKS", {"openmpi", "mpich"}}, /* srun --mpi=pmix, or none */
    };
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const char *size = getenv(launchers[i].size);
        long n = size ? strtol(size, NULL, 10) : 0;
        if (n > 1) {
            mpis[0] = launchers[i].mpis[0];
            mpis[1] = launchers[i].mpis[1];
            return n;
        }
    }
    return 1;
}

static bool find(void *handle, const char *name, void *function)
{
    void *symbol = dlsym(handle, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

/* The program's folder, with a slash at its end. A path that is not absolute is none. */
static bool find_folder(char folder[PATH_MAX])
{
    ssize_t n = readlink("/proc/self/exe", folder, PATH_MAX);
    if (n <= 0 || n == PATH_MAX || *folder != '/')
        return false;
    folder[n] = '\0';
    strrchr(folder, '/')[1] = '\0';
    return true;
}

/* The library for one of the MPIs, beside the program or in ../lib/assay; "" where none is. */
static void find_library(struct library *out, const char *program, const char *const mpis[2])
{
    static const char *const folders[] = {"", "../lib/assay/"};
    for (size_t i = 0; i < 4; i++) {
        snprintf(out->path, sizeof out->path, "%s%sassay-mpi-%s.so", program, folders[i % 2],
                 mpis[i / 2]);
        if (access(out->path, R_OK) == 0)
            return;
    }
    out->path[0] = '\0';
}

static enum status load(struct library *out, long n, const char *const mpis[2],
                        struct status_why *why)
{
    char folder[PATH_MAX];
    if (!find_folder(folder))
        return status_fail(why, STATUS_UNSUPPORTED,
                           "%ld processes were started together, and /proc/self/exe does not tell "
                           "the program's folder, where assay-mpi-%s.so is looked for; expected "
                           "/proc to be mounted, or --mpi off, with which each evaluates by itself",
                           n, mpis[0]);
    find_library(out, folder, mpis);
    if (!*out->path)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "%ld processes were started together, and this build has no "
                           "assay-mpi-%s.so with which they could share the work (docs/cluster.md "
                           "says how to make it); with --mpi off each evaluates by itself",
                           n, mpis[0]);
    /* Global: MPI's own modules look for its symbols. */
    void *handle = dlopen(out->path, RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
    if (!handle || !find(handle, "assay_mpi_begin", &out->begin) ||
        !find(handle, "assay_mpi_share", &out->share))
        return status_fail(why, STATUS_UNSUPPORTED, "%s cannot be loaded: %s", out->path,
                           dlerror());
    return STATUS_OK;
}

/* Everybody learns where rank 0 listens. A port of 0 says that it does not. */
static enum status meet(const struct library *library, struct status_why *why)
{
    struct eval_team *team = &cluster.team;
    struct eval_team_address address = {.port = 0};
    enum status status = STATUS_OK;
    if (cluster.rank == 0) {
        status = eval_team_listen(team, cluster.n_ranks, why);
        if (!status)
            address = team->address;
    }
    if (library->share(&address, sizeof address) != 0 && !status)
        status = status_fail(why, STATUS_DEVICE, "%s: the broadcast failed", library->path);
    cli_mapping_fault_catch(); /* MPI has handlers of its own */
    if (status)
        return status;
    return cluster.rank ? eval_team_join(team, cluster.rank, &address, why)
                        : eval_team_gather(team, NULL, why);
}

enum status cli_cluster_join(int mpi, struct status_why *why)
{
    const char *mpis[2] = {"openmpi", "mpich"};
    long n = mpi == CLI_MPI_OFF || cluster.n_ranks > 1 ? 1 : n_started(mpis);
    int rank = 0, size = 1, local_rank = 0;
    struct library library = {""};
    if (n == 1)
        return STATUS_OK;
    enum status status = load(&library, n, mpis, why);
    if (!status && library.begin(&rank, &size, &local_rank) != 0)
        status = status_fail(why, STATUS_DEVICE, "%s: MPI does not begin", library.path);
    if (!status && size != n)
        status = status_fail(why, STATUS_DEVICE,
                             "%ld processes were started together, but %s sees %d; expected the "
                             "MPI that started them (srun: --mpi=pmix or --mpi=pmi2)",
                             n, library.path, size);
    if (status)
        return status;
    cluster = (struct cli_cluster){
        .rank = (size_t)rank, .n_ranks = (size_t)size, .local_rank = (size_t)local_rank};
    cluster.n_shares = 1;
    if (rank)
        cli_be_quiet(true);
    return meet(&library, why);
}

enum status cli_cluster_split(const char *split, struct status_why *why)
{
    static const char layers[] = "layers";
    size_t n = cluster.n_ranks, n_word = sizeof layers - 1;
    const char *number = split && strncmp(split, layers, n_word) == 0 ? split + n_word : "";
    char *end = NULL;
    cluster.n_shares = 1;
    if (!split)
        return STATUS_OK;
    if (*number == ':' && number[1] >= '1' && number[1] <= '9')
        n = strtoul(number + 1, &end, 10);
    if (end ? *end || n < 2 : strcmp(split, layers) != 0)
        return status_fail(why, STATUS_USAGE,
                           "--split: '%s', expected layers, or layers:N with 2 processes or more "
                           "in a group",
                           split);
    if (cluster.n_ranks == 1)
        return status_fail(why, STATUS_USAGE,
                           "--split %s: there is one process; expected several, which mpirun or "
                           "srun started for an evaluation, and --mpi auto",
                           split);
    if (cluster.n_ranks % n)
        return status_fail(why, STATUS_USAGE,
                           "--split %s: %zu processes are not groups of %zu; expected a multiple",
                           split, cluster.n_ranks, n);
    cluster.n_shares = n;
    return STATUS_OK;
}
