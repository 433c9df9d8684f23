/* What limits a run on this machine: processors, memory, what is to be read from disk. */
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/arithmetic.h"
#include "base/clock.h"
#include "base/pool.h"
#include "base/system/system.h"
#include "cli/plan/plan.h"
#include "model/swap.h"

enum { BLOCK = 1 << 20, MAX_PAGES = BLOCK / 4096, STREAM = 16 << 20, STREAM_PASSES = 3 };
static const double read_seconds = 0.5;

/** Files that are read for the first time: how much, and how fast. */
struct reading {
    double absent;
    double n_read, seconds;
    char *buffer;
};

/** Bytes of a block of a mapped file that are not in memory. */
static size_t absent_bytes(const char *block, size_t n_bytes)
{
    unsigned char pages[MAX_PAGES];
    size_t page = (size_t)sysconf(_SC_PAGESIZE), n_pages = base_div_up(n_bytes, page), n = 0;
    if (n_pages > MAX_PAGES || mincore((void *)(uintptr_t)block, n_bytes, (void *)pages))
        return 0;
    for (size_t i = 0; i < n_pages; i++)
        n += !(pages[i] & 1);
    return base_min(n * page, n_bytes);
}

/** Whether a block of a file lies in a table of which a run of the model reads a few rows. */
static bool is_table(const struct model *model, const struct gguf_file *file, const char *block,
                     size_t n_bytes)
{
    for (size_t i = 0; i < gguf_n_tensors(model_file(model)); i++) {
        const char *name = gguf_tensor_at(model_file(model), i)->name;
        const struct gguf_tensor *table =
            model_in_force(model, i).rows_of_token > 0 ? gguf_tensor_find(file, name) : NULL;
        for (uint64_t k = 0; table && k < gguf_tensor_n_stretches(table); k++) {
            size_t n;
            uintptr_t begin = (uintptr_t)gguf_tensor_stretch(table, k, &n), at = (uintptr_t)block;
            if (at >= begin && at + n_bytes <= begin + n)
                return true;
        }
    }
    return false;
}

/** model: one with the file's tensors. */
static void look_at_shard(struct reading *r, const struct gguf_file *file, size_t shard,
                          const struct model *model)
{
    uint64_t n_bytes = 0, data_offset = 0;
    const char *data = gguf_shard_data(file, shard, &n_bytes, &data_offset);
    int fd = open(gguf_shard_path(file, shard), O_RDONLY | O_CLOEXEC);
    for (uint64_t at = 0; at < n_bytes; at += BLOCK) {
        size_t n = (size_t)base_min(n_bytes - at, BLOCK);
        size_t absent = is_table(model, file, data + at, n) ? 0 : absent_bytes(data + at, n);
        r->absent += (double)absent;
        if (absent < n || fd < 0 || r->seconds > read_seconds)
            continue;
        double began = base_clock_seconds();
        ssize_t got = pread(fd, r->buffer, n, (off_t)at);
        r->seconds += base_clock_seconds() - began;
        r->n_read += got > 0 ? (double)got : 0;
    }
    if (fd >= 0)
        close(fd);
}

static void look_at_file(struct reading *r, const struct gguf_file *file, const struct model *model)
{
    for (size_t i = 0; i < gguf_n_shards(file); i++)
        look_at_shard(r, file, i, model);
}

/** Each file once, also where several models share one. */
static void look_at_files(struct reading *r, const struct eval_models *m)
{
    const struct gguf_file *first = model_file(m->model);
    look_at_file(r, first, m->model);
    for (size_t i = 0; i < m->n_candidates; i++)
        if (model_file(m->candidates[i]) != first)
            look_at_file(r, model_file(m->candidates[i]), m->candidates[i]);
    for (size_t i = 0; m->streams && i < m->streams->n_files; i++)
        if (m->streams->files[i] != first)
            look_at_file(r, m->streams->files[i], m->model);
}

/** A sum over a thread's part, so that it is read. */
static void sum(void *context, size_t index, unsigned thread)
{
    (void)thread;
    const uint64_t *numbers = *(uint64_t *const *)context + index * (STREAM / sizeof(uint64_t));
    uint64_t total = 0;
    for (size_t i = 0; i < STREAM / sizeof(uint64_t); i++)
        total += numbers[i];
    *(volatile uint64_t *)(uintptr_t)numbers = total;
}

/** Infinite where it cannot be measured. */
static double bandwidth(unsigned n_threads)
{
    size_t n_bytes = (size_t)n_threads * STREAM;
    struct base_pool *pool;
    uint64_t *numbers = malloc(n_bytes);
    double least = (double)INFINITY;
    if (!numbers || base_pool_open(&pool, n_threads, &(struct status_why){""})) {
        free(numbers);
        return (double)INFINITY;
    }
    for (size_t i = 0; i < n_bytes / sizeof *numbers; i++)
        numbers[i] = i; /* also brings the pages */
    for (int i = 0; i < STREAM_PASSES; i++) {
        double began = base_clock_seconds();
        (void)base_pool_run(pool, n_threads, sum, &numbers, NULL);
        least = fmin(least, base_clock_seconds() - began);
    }
    base_pool_close(pool);
    free(numbers);
    return (double)n_bytes / least;
}

void cli_plan_look(struct cli_plan_machine *out, const struct cli_evaluation *e)
{
    struct kern_description device = kern_describe(e->backends.items[0]);
    struct reading r = {.buffer = malloc(BLOCK)};
    *out = (struct cli_plan_machine){.n_threads = device.n_threads,
                                     .n_processors = base_pool_processors(),
                                     .on_device = device.own_memory,
                                     .available = base_system_available(),
                                     .disk = (double)INFINITY,
                                     .bandwidth = (double)INFINITY};
    if (r.buffer)
        look_at_files(&r, &e->models);
    free(r.buffer);
    out->absent = r.absent;
    if (r.n_read > 0 && r.seconds > 0)
        out->disk = r.n_read / r.seconds;
    if (!device.own_memory)
        out->bandwidth = bandwidth(device.n_threads);
}
