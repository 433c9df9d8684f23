/* The gate of the feed-forward block. */
#include "kernels/cpu/context.h"

enum { GATE_ELEMENTS = 8192 }; /* per iteration of the pool */

struct gate_job {
    const struct kern_ops *ops;
    float *gate;
    const float *up;
    size_t n;
};

static void gate_elements(void *context, size_t index, unsigned thread)
{
    (void)thread;
    const struct gate_job *job = context;
    size_t begin = index * GATE_ELEMENTS;
    size_t n = job->n - begin < GATE_ELEMENTS ? job->n - begin : GATE_ELEMENTS;
    job->ops->gate(job->gate + begin, job->up + begin, n);
}

enum status kern_cpu_gate(struct kern_backend *b, float *gate, const float *up, size_t n,
                          struct status_why *why)
{
    (void)why;
    struct kern_cpu *cpu = kern_cpu_of(b);
    struct gate_job job = {&cpu->table.ops, gate, up, n};
    return kern_cpu_run(cpu, (n + GATE_ELEMENTS - 1) / GATE_ELEMENTS, gate_elements, &job);
}
