/* Memory of the device, copies and launches, which operations work with. */
#include "kernels/cuda/context.h"

enum { ALIGNMENT = 256 };

void *kern_cuda_take(struct kern_cuda_arena *arena, size_t n_bytes)
{
    char *taken = arena->base ? arena->base + arena->used : NULL;
    arena->used += base_round_up(n_bytes, ALIGNMENT);
    return taken;
}

enum status kern_cuda_memory(struct kern_cuda *cuda, void **out, size_t n_bytes,
                             struct status_why *why)
{
    enum status status;
    do {
        *out = NULL;
        status = cuda->device->ops->alloc(cuda->device, out, n_bytes ? n_bytes : 1, why);
    } while (status == STATUS_MEMORY && kern_cuda_cache_shrink(cuda));
    return status;
}

enum status kern_cuda_scratch(struct kern_cuda *cuda, void **out, size_t n_bytes,
                              struct status_why *why)
{
    *out = NULL;
    cuda->scratch_uses++;
    if (n_bytes > cuda->scratch_bytes) {
        cuda->scratch_uses++; /* what was in it is lost */
        cuda->device->ops->free(cuda->device, cuda->scratch);
        cuda->scratch = NULL;
        cuda->scratch_bytes = 0;
        enum status status = kern_cuda_memory(cuda, &cuda->scratch, n_bytes, why);
        if (status)
            return status;
        cuda->scratch_bytes = n_bytes;
    }
    *out = cuda->scratch;
    return STATUS_OK;
}

enum status kern_cuda_cancelled(const struct kern_cuda *cuda)
{
    const atomic_bool *cancel = cuda->base.cancel;
    return cancel && atomic_load_explicit(cancel, memory_order_relaxed) ? STATUS_CANCELLED
                                                                        : STATUS_OK;
}

enum status kern_cuda_run_launch(struct kern_cuda *cuda, const struct kern_cuda_launch *launch,
                                 struct status_why *why)
{
    enum status status = kern_cuda_settle(cuda, why);
    if (!status)
        status = kern_cuda_cancelled(cuda);
    if (status || launch->n_blocks == 0)
        return status;
    return cuda->device->ops->launch(cuda->device, launch, why);
}

enum status kern_cuda_run(struct kern_cuda *cuda, enum kern_cuda_kernel kernel, size_t n_blocks,
                          const void *args, struct status_why *why)
{
    const struct kern_cuda_launch launch = {
        .kernel = kernel,
        .n_blocks = n_blocks,
        .shared_bytes = kern_cuda_kernel_info(kernel)->shared_bytes,
        .args = args,
    };
    return kern_cuda_run_launch(cuda, &launch, why);
}

enum status kern_cuda_put(struct kern_cuda *cuda, void *to, const void *from, size_t n_bytes,
                          struct status_why *why)
{
    if (n_bytes == 0)
        return STATUS_OK;
    const struct kern_cuda_rows all = {from, 1, n_bytes, n_bytes, NULL};
    enum status status = kern_cuda_settle(cuda, why);
    return status ? status
                  : cuda->device->ops->copy_in(cuda->device, KERN_CUDA_COMPUTE, to, &all, why);
}

enum status kern_cuda_get(struct kern_cuda *cuda, void *to, const void *from, size_t n_bytes,
                          struct status_why *why)
{
    enum status status = kern_cuda_settle(cuda, why);
    return status ? status
                  : cuda->device->ops->copy_out(cuda->device, KERN_CUDA_COMPUTE, to, from, n_bytes,
                                                why);
}

enum status kern_cuda_scratch_put(struct kern_cuda *cuda, struct kern_cuda_array *arrays,
                                  size_t n_arrays, struct status_why *why)
{
    struct kern_cuda_arena arena = {0};
    for (size_t i = 0; i < n_arrays; i++)
        (void)kern_cuda_take(&arena, arrays[i].n_bytes);
    void *memory;
    enum status status = kern_cuda_scratch(cuda, &memory, arena.used, why);
    arena = (struct kern_cuda_arena){.base = memory};
    for (size_t i = 0; !status && i < n_arrays; i++) {
        arrays[i].to = kern_cuda_take(&arena, arrays[i].n_bytes);
        if (arrays[i].from)
            status = kern_cuda_put(cuda, arrays[i].to, arrays[i].from, arrays[i].n_bytes, why);
    }
    return status;
}
