/* What is called from a signal handler here uses no stdio, no allocation and no locks. */
#include "cli/process/faults.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/system/system.h"
#include "cli/process/run.h"
#include "cli/process/signals.h"

/** Threads that read the same file meet the same fault: the first to come here says so. */
static void wait_unless_first(void)
{
    static atomic_flag taken = ATOMIC_FLAG_INIT;
    while (atomic_flag_test_and_set(&taken))
        pause(); /* until the first one ends the process */
}

static atomic_bool survives;
static atomic_size_t n_faults;
static uintptr_t page_bytes;

/** Addresses that have become zeros. start 0: a free entry. */
static struct lost {
    atomic_uintptr_t start, end;
} lost[1024];
enum { N_LOST = sizeof lost / sizeof *lost };

static bool overlaps(const struct lost *l, uintptr_t start, uintptr_t end)
{
    uintptr_t at = atomic_load(&l->start);
    return at && at < end && start < atomic_load(&l->end);
}

/** From outside the handler: no fault is being handled meanwhile. */
bool cli_mapping_lost(const void *data, size_t n_bytes)
{
    for (size_t i = 0; i < N_LOST; i++)
        if (overlaps(&lost[i], (uintptr_t)data, (uintptr_t)data + n_bytes))
            return true;
    return false;
}

void cli_mapping_forget(const void *data, size_t n_bytes)
{
    for (size_t i = 0; i < N_LOST; i++)
        if (overlaps(&lost[i], (uintptr_t)data, (uintptr_t)data + n_bytes))
            atomic_store(&lost[i].start, 0);
}

/** Threads come here at a time. `end` is only read of entries that have a start. */
static bool note_lost(uintptr_t start, uintptr_t end)
{
    for (size_t i = 0; i < N_LOST; i++) {
        uintptr_t none = 0;
        if (atomic_load(&lost[i].start))
            continue;
        atomic_store(&lost[i].end, end);
        if (atomic_compare_exchange_strong(&lost[i].start, &none, start))
            return true;
    }
    return false;
}

/**
 * Zeros from this page to the end of the mapping. They are noted before they are there, so that
 * another thread that meets them does not look for the file. mmap is one system call.
 */
static bool survive(const void *address, uintptr_t end)
{
    uintptr_t page = (uintptr_t)address / page_bytes * page_bytes;
    int before = errno;
    bool done = note_lost(page, end) &&
                mmap((void *)page, end - page, PROT_READ,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != MAP_FAILED;
    errno = before;
    atomic_fetch_add(&n_faults, 1);
    return done;
}

void cli_mapping_fault_survive(void)
{
    atomic_store(&survives, true);
}

size_t cli_mapping_faults(void)
{
    return atomic_load(&n_faults);
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
    (void)context;
    char path[512];
    uintptr_t end = 0;
    bool found = base_system_lost_page(info, path, sizeof path, &end);
    /* Another thread has been here, before the path was looked for or meanwhile: try again. */
    if (atomic_load(&survives) && cli_mapping_lost(info->si_addr, 1))
        return;
    if (!found) {
        signal(number, SIG_DFL); /* the same instruction again, and for good */
        return;
    }
    if (atomic_load(&survives) && survive(info->si_addr, end))
        return;
    wait_unless_first();
    cli_signal_print("assay: ");
    cli_signal_print(path);
    cli_signal_print(": a part of it can no longer be read: the file became shorter, or its disk "
                     "failed\n");
    _exit(CLI_EXIT_FAILED);
}

void cli_mapping_fault_catch(void)
{
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
    page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
}
