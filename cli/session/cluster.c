#include "cli/session/cluster.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/system.h"
#include "cli/process/deadline.h"
#include "cli/process/faults.h"
#include "cli/process/say.h"
#include "cli/process/signals.h"

/* clients/cluster/mpi/assay_mpi.c */
typedef int begin_fn(int *rank, int *size, int *local_rank, int *local_size);
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

/* What started this process, by the environment that it gave. */
struct launcher {
    const char *size, *rank; /* variables */
    const char *mpis[2];     /* the libraries that are likely to know of it */
};

/* How many processes were started together. */
static long find_launcher(struct launcher *out)
{
    static const struct launcher launchers[] = {
        /* Open MPI's mpirun */
        {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", {"openmpi", "mpich"}},
        /* MPICH's, and srun --mpi=pmi2 */
        {"PMI_SIZE", "PMI_RANK", {"mpich", "openmpi"}},
        /* srun --mpi=pmix, or none */
        {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", {"openmpi", "mpich"}},
    };
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const char *size = getenv(launchers[i].size);
        long n = size ? strtol(size, NULL, 10) : 0;
        *out = launchers[i];
        if (n > 1)
            return n;
    }
    return 1;
}

static bool find(void *handle, const char *name, void *function)
{
    void *symbol = dlsym(handle, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

/* The program's folder, with a slash at its end. A path that is not absolute does not count. */
static bool find_folder(char folder[PATH_MAX])
{
    if (!base_system_program(folder))
        return false;
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

static enum status load(struct library *out, const struct launcher *launcher, long n,
                        struct status_why *why)
{
    char folder[PATH_MAX];
    if (!find_folder(folder))
        return status_fail(why, STATUS_UNSUPPORTED,
                           "%ld processes were started together, and /proc/self/exe does not tell "
                           "the program's folder, where assay-mpi-%s.so is looked for; expected "
                           "/proc to be mounted, or --mpi off, with which each evaluates by itself",
                           n, launcher->mpis[0]);
    find_library(out, folder, launcher->mpis);
    if (!*out->path)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "%ld processes were started together, and this build has no "
                           "assay-mpi-%s.so with which they could share the work (docs/cluster.md "
                           "says how to make it); with --mpi off each evaluates by itself",
                           n, launcher->mpis[0]);
    /* Global: MPI's own modules look for its symbols. */
    void *handle = dlopen(out->path, RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
    if (!handle || !find(handle, "assay_mpi_begin", &out->begin) ||
        !find(handle, "assay_mpi_share", &out->share))
        return status_fail(why, STATUS_UNSUPPORTED, "%s cannot be loaded: %s", out->path,
                           dlerror());
    return STATUS_OK;
}

/* Who is there, as MPI says. one_machine: out, whether all are on this one. */
static enum status begin(const struct library *library, long n, bool *one_machine,
                         struct status_why *why)
{
    int rank = 0, size = 1, local_rank = 0, local_size = 0;
    if (library->begin(&rank, &size, &local_rank, &local_size) != 0)
        return status_fail(why, STATUS_DEVICE, "%s: MPI does not begin", library->path);
    if (size != n)
        return status_fail(why, STATUS_DEVICE,
                           "%ld processes were started together, but %s sees %d; expected the MPI "
                           "that started them (srun: --mpi=pmix or --mpi=pmi2)",
                           n, library->path, size);
    cluster = (struct cli_cluster){.rank = (size_t)rank,
                                   .n_ranks = (size_t)size,
                                   .local_rank = (size_t)local_rank,
                                   .n_shares = 1};
    *one_machine = local_size == size;
    if (rank) {
        cli_be_quiet(true);
        cli_interrupt_tell_elsewhere();
    }
    return STATUS_OK;
}

/* Everybody learns where rank 0 listens. A port of 0 says that it does not. MPI is then left. */
static enum status share(const struct library *library, bool one_machine,
                         struct cluster_team_address *address, struct status_why *why)
{
    enum status status = STATUS_OK;
    if (cluster.rank == 0) {
        status = cluster_team_listen(&cluster.team, cluster.n_ranks, one_machine, why);
        if (!status)
            *address = cluster.team.address;
    }
    if (library->share(address, sizeof *address) != 0 && !status)
        status = status_fail(why, STATUS_DEVICE, "%s: the broadcast failed", library->path);
    cli_mapping_fault_catch(); /* MPI has handlers of its own */
    return status;
}

/* Nobody can say to MPI that it has waited long enough, or ask for whom. */
static enum status limit_mpi(struct cli_deadline *limit, const struct launcher *launcher, long n,
                             int64_t seconds, struct status_why *why)
{
    char sentence[400], host[CLUSTER_TEAM_HOST] = "";
    const char *rank = getenv(launcher->rank);
    (void)gethostname(host, sizeof host - 1);
    snprintf(sentence, sizeof sentence,
             "rank %.8s of %ld (%s, process %ld): MPI did not bring the processes together within "
             "%ld s (--mpi-wait); it waits for all of them: one is stopped or hangs, or the "
             "network between them is closed",
             rank ? rank : "?", n, host, (long)getpid(), (long)seconds);
    bool first = rank && strcmp(rank, "0") == 0; /* mpirun ends the others then: one sentence */
    return cli_deadline_begin(limit, seconds + !first, sentence, why);
}

enum status cli_cluster_join(const struct cli_machine_settings *settings, struct status_why *why)
{
    struct launcher launcher;
    struct library library = {""};
    struct cli_deadline limit;
    struct cluster_team_address address = {.port = 0};
    bool one_machine = false;
    int64_t seconds = settings->mpi_wait ? settings->mpi_wait : CLUSTER_TEAM_SECONDS;
    long n = settings->mpi == CLI_MPI_OFF || cluster.n_ranks > 1 ? 1 : find_launcher(&launcher);
    if (n == 1)
        return STATUS_OK;
    enum status status = load(&library, &launcher, n, why);
    if (!status)
        status = limit_mpi(&limit, &launcher, n, seconds, why);
    if (status)
        return status;
    status = begin(&library, n, &one_machine, why);
    if (!status)
        status = share(&library, one_machine, &address, why);
    cli_deadline_end(&limit);
    if (status)
        return status;
    return cluster.rank
               ? cluster_team_join(&cluster.team, cluster.rank, &address, (double)seconds, why)
               : cluster_team_gather(&cluster.team, (double)seconds, NULL, why);
}

enum status cli_cluster_alone(const char *what, struct status_why *why)
{
    struct launcher launcher;
    const char *mpi = getenv("ASSAY_MPI");
    long n = mpi && strcmp(mpi, "off") == 0 ? 1 : find_launcher(&launcher);
    return n == 1 ? STATUS_OK
                  : status_fail(why, STATUS_USAGE,
                                "%ld processes were started together, and %s is the work of one; "
                                "expected it without mpirun or srun, or ASSAY_MPI=off, with which "
                                "each evaluates by itself",
                                n, what);
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
