#include "tests/ptx/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/parse.h"
#include "tests/ptx/report.h"
#include "tests/ptx/traffic.h"

enum { SHARED_BYTES = 228 << 10 };

void ptx_machine_open(struct ptx_machine *m, const char *const *files, size_t n_files,
                      enum ptx_order order)
{
    *m = (struct ptx_machine){.order = order, .tick = 2 /* 1: what the host writes */};
    for (size_t i = 0; i < n_files; i++)
        ptx_parse(&m->program, files[i]);
    for (size_t i = 0; i < m->program.n_arrays; i++)
        ptx_space_add_constant(&m->space, m->program.arrays[i].bytes, m->program.arrays[i].n_bytes);
    size_t n_bytes = (m->program.n_kernels + 1) * sizeof *m->residents;
    m->residents = memset(ptx_grow(NULL, n_bytes), 0, n_bytes);
    void *shared;
    if (posix_memalign(&shared, 64, SHARED_BYTES) != 0)
        abort();
    m->shared = shared;
    ptx_shadow_open(&m->shared_shadow, SHARED_BYTES);
    for (size_t i = 0; i < m->program.n_kernels; i++) {
        const struct ptx_kernel *k = &m->program.kernels[i];
        size_t n = k->local_bytes * k->max_threads;
        m->local_bytes = n > m->local_bytes ? n : m->local_bytes;
    }
    m->local = ptx_grow(NULL, m->local_bytes + 1);
    ptx_shadow_open(&m->local_shadow, m->local_bytes);
    if (order == PTX_RANDOM)
        m->rng = rng_open(rng_seed(), 18);
}

void ptx_machine_close(struct ptx_machine *m)
{
    for (size_t i = 0; i < m->program.n_kernels; i++) {
        for (unsigned k = 0; k < m->residents[i].n_warps; k++)
            ptx_warp_close(&m->residents[i].warps[k]);
        free(m->residents[i].warps);
    }
    free(m->residents);
    free(m->traffic);
    free(m->shared);
    free(m->local);
    ptx_shadow_close(&m->shared_shadow);
    ptx_shadow_close(&m->local_shadow);
    while (m->space.n > 0)
        ptx_space_remove(&m->space, m->space.list[0].memory);
    free(m->space.list);
    ptx_program_free(&m->program);
}

size_t ptx_machine_find(const struct ptx_machine *m, const char *name)
{
    size_t i = 0;
    while (i < m->program.n_kernels && strcmp(ptx_report_name(&m->program.kernels[i]), name) != 0)
        i++;
    return i;
}

/** Numbers 0 .. n - 1 in the order in which blocks run. */
static size_t *order_blocks(struct ptx_machine *m, size_t n, bool backwards)
{
    size_t *order = ptx_grow(NULL, (n + 1) * sizeof *order);
    for (size_t i = 0; i < n; i++)
        order[i] = backwards != (m->order == PTX_BACKWARDS) ? n - 1 - i : i;
    for (size_t i = n; m->order == PTX_RANDOM && i > 1; i--) {
        size_t k = rng_below(&m->rng, i), last = order[i - 1];
        order[i - 1] = order[k];
        order[k] = last;
    }
    return order;
}

static void enter(struct ptx_machine *m, const struct ptx_launch *launch)
{
    const struct ptx_kernel *k = &m->program.kernels[launch->kernel];
    struct ptx_residents *r = &m->residents[launch->kernel];
    if (launch->n_threads % PTX_LANES != 0 || launch->n_threads > k->max_threads ||
        launch->shared_bytes > SHARED_BYTES) {
        fprintf(stderr, "ptx: %s: %u threads of %u, %zu bytes shared\n", ptx_report_name(k),
                launch->n_threads, k->max_threads, launch->shared_bytes);
        abort();
    }
    if (m->last != k)
        ptx_shadow_clear(&m->shared_shadow);
    m->last = k;
    if (r->warps)
        return;
    r->n_warps = launch->n_threads / PTX_LANES;
    r->warps = ptx_grow(NULL, r->n_warps * sizeof *r->warps);
    for (unsigned i = 0; i < r->n_warps; i++)
        ptx_warp_open(&r->warps[i], k, i * PTX_LANES, launch->n_threads);
}

void ptx_machine_launch(struct ptx_machine *m, const struct ptx_launch *launch)
{
    enter(m, launch);
    struct ptx_block b = {.kernel = &m->program.kernels[launch->kernel],
                          .space = &m->space,
                          .params = launch->params,
                          .shared = m->shared,
                          .shared_bytes = launch->shared_bytes,
                          .shared_shadow = &m->shared_shadow,
                          .local = m->local,
                          .local_shadow = &m->local_shadow,
                          .now = {.launch = ++m->tick, .tick = m->tick},
                          .warps = m->residents[launch->kernel].warps,
                          .n_warps = m->residents[launch->kernel].n_warps,
                          .may_read_unwritten = launch->may_read_unwritten,
                          .order = m->order,
                          .rng = &m->rng};
    if (m->traffic) {
        struct ptx_traffic *t = b.traffic = &m->traffic[launch->kernel];
        t->launches++;
        t->blocks += launch->n_blocks;
        t->threads = launch->n_threads;
        t->shared_size =
            launch->shared_bytes > t->shared_size ? launch->shared_bytes : t->shared_size;
    }
    size_t *order = order_blocks(m, launch->n_blocks, launch->backwards);
    for (size_t i = 0; i < launch->n_blocks; i++) {
        memset(m->shared, 0xff, launch->shared_bytes);
        memset(m->local, 0xff, m->local_bytes);
        b.number = order[i];
        ptx_block_run(&b);
    }
    if (m->traffic)
        ptx_traffic_end(b.traffic, &m->space);
    m->tick = b.now.tick;
    free(order);
}
