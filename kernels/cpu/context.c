/* The threads and the scratch memory that operations work with. */
#include "kernels/cpu/context.h"

#include "kernels/cpu/memory.h"

enum status kern_cpu_run(struct kern_cpu *cpu, size_t n, base_pool_fn *fn, void *context)
{
    return base_pool_run(cpu->pool, n, fn, context, cpu->base.cancel);
}

enum status kern_cpu_scratch(struct kern_cpu *cpu, void **out, size_t n_bytes,
                             struct status_why *why)
{
    *out = NULL;
    cpu->packed = (struct kern_packed){0};
    if (n_bytes > cpu->scratch_bytes) {
        kern_memory_free(cpu->scratch);
        cpu->scratch_bytes = 0;
        cpu->scratch = kern_memory_new(n_bytes);
        if (!cpu->scratch)
            return status_fail(why, STATUS_MEMORY, "no memory for %zu bytes of scratch", n_bytes);
        cpu->scratch_bytes = n_bytes;
    }
    *out = cpu->scratch;
    return STATUS_OK;
}
