/*
 * The time of operations. They are queued, so the host's clock says nothing of them. Two marks on
 * the compute stream, around each, do. They are read when the ring of marks is full, or when the
 * times are wanted.
 */
#include "kernels/cuda/context.h"

static unsigned mark_of(size_t operation, unsigned end)
{
    return KERN_CUDA_MARK_PHASES + 2 * (unsigned)(operation % KERN_CUDA_N_TIMED) + end;
}

/** Count the oldest operation, once it is done. One that failed counts nothing. */
static void count_oldest(struct kern_cuda *cuda)
{
    struct kern_cuda_phases *p = &cuda->phases;
    size_t i = p->n_counted++, slot = i % KERN_CUDA_N_TIMED;
    double seconds = 0.0;
    if (p->marked[slot] &&
        !cuda->device->ops->elapsed(cuda->device, mark_of(i, 0), mark_of(i, 1), &seconds, NULL))
        kern_clock_count(&cuda->clock, p->phase[slot], (uint64_t)(1e9 * seconds));
}

void kern_cuda_begin_phase(struct kern_backend *b)
{
    struct kern_cuda *cuda = kern_cuda_of(b);
    struct kern_cuda_phases *p = &cuda->phases;
    if (p->n_begun - p->n_counted == KERN_CUDA_N_TIMED)
        count_oldest(cuda);
    p->marked[p->n_begun % KERN_CUDA_N_TIMED] =
        !cuda->device->ops->mark(cuda->device, mark_of(p->n_begun, 0), NULL);
}

void kern_cuda_end_phase(struct kern_backend *b, enum kern_phase phase)
{
    struct kern_cuda *cuda = kern_cuda_of(b);
    struct kern_cuda_phases *p = &cuda->phases;
    size_t i = p->n_begun++, slot = i % KERN_CUDA_N_TIMED;
    p->phase[slot] = phase;
    p->marked[slot] =
        p->marked[slot] && !cuda->device->ops->mark(cuda->device, mark_of(i, 1), NULL);
}

void kern_cuda_collect_times(struct kern_backend *b)
{
    struct kern_cuda *cuda = kern_cuda_of(b);
    while (cuda->phases.n_counted < cuda->phases.n_begun)
        count_oldest(cuda);
}
