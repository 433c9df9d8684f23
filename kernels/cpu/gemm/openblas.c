/*
 * OpenBLAS, loaded when a backend first asks for it: its start-up makes threads and maps memory,
 * and where the system refuses them it retries for ever, or interrupts the process.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/system/system.h"
#include "kernels/cpu/gemm/blas.h"

/* Address space that the library maps for each thread that multiplies: 128 MiB, and some. */
enum { THREAD_BYTES = 160 << 20 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of `library` */
static struct {
    void *handle;
    kern_cblas_sgemm_fn *sgemm;
    const char *(*version)(void);
    void *(*take_buffer)(int);
    void (*give_buffer)(void *);
} library;

static bool find(const char *name, void *function)
{
    void *symbol = dlsym(library.handle, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static enum status load(struct status_why *why)
{
    static const char *const names[] = {BASE_SYSTEM_LIBRARY("openblas", "0"), "libopenblas.so"};
    /* Its own threads stay away: the backend's multiply. */
    if (setenv("OPENBLAS_NUM_THREADS", "1", 1))
        return status_fail(why, STATUS_MEMORY, "no memory to load OpenBLAS");
    for (size_t i = 0; !library.handle && i < sizeof names / sizeof *names; i++)
        library.handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library.handle)
        return status_fail(why, STATUS_UNSUPPORTED, "OpenBLAS cannot be loaded: %s", dlerror());
    if (!find("openblas_get_config", &library.version) ||
        !find("blas_memory_alloc", &library.take_buffer) ||
        !find("blas_memory_free", &library.give_buffer) || !find("cblas_sgemm", &library.sgemm)) {
        library.version = NULL;
        return status_fail(why, STATUS_UNSUPPORTED, "OpenBLAS cannot be used: %s", dlerror());
    }
    return STATUS_OK;
}

/** Let the library map the buffers of n_threads now, after a look whether there is room. */
static enum status map_buffers(unsigned n_threads, struct status_why *why)
{
    size_t n_bytes = (size_t)n_threads * THREAD_BYTES;
    void *room = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    void **buffers = malloc(n_threads * sizeof *buffers);
    if (room != MAP_FAILED)
        munmap(room, n_bytes);
    if (room == MAP_FAILED || !buffers) {
        free(buffers);
        return status_fail(why, STATUS_MEMORY,
                           "OpenBLAS needs %zu MiB of address space for %u thread%s, which the "
                           "system refuses",
                           n_bytes >> 20, n_threads, status_plural(n_threads));
    }
    for (unsigned i = 0; i < n_threads; i++)
        buffers[i] = library.take_buffer(0);
    for (unsigned i = 0; i < n_threads; i++)
        library.give_buffer(buffers[i]);
    free(buffers);
    return STATUS_OK;
}

enum status kern_openblas_load(kern_cblas_sgemm_fn **sgemm, unsigned n_threads,
                               struct status_why *why)
{
    pthread_mutex_lock(&lock);
    enum status status = library.version ? STATUS_OK : load(why);
    if (!status)
        status = map_buffers(n_threads, why);
    *sgemm = status ? NULL : library.sgemm;
    pthread_mutex_unlock(&lock);
    return status;
}

const char *kern_openblas_version(void)
{
    pthread_mutex_lock(&lock);
    const char *version = library.version ? library.version() : "";
    pthread_mutex_unlock(&lock);
    return version;
}
