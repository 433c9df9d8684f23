/* Opening, closing and memory of the CUDA backend; the operations have files of their own. */
#include <stdio.h>
#include <stdlib.h>

#include "kernels/cuda/context.h"
#include "kernels/cuda/integers/integers.h"
#include "kernels/cuda/operations.h"

enum {
    PANEL_SIZE = 64 << 20,
    N_SLOTS = 24,
    PRODUCT_TOKENS = 4096,
    PRODUCT_STEP = 128,
    PARTS_BYTES = 64 << 20,
    BATCH_TILES = 4 /* tiles of a batch: weights that are streamed are uploaded once for all */
};

static enum status cuda_alloc(struct kern_backend *b, void **out, size_t n_bytes,
                              struct status_why *why)
{
    return kern_cuda_memory(kern_cuda_of(b), out, n_bytes, why);
}

static void cuda_free(struct kern_backend *b, void *memory)
{
    struct kern_cuda *cuda = kern_cuda_of(b);
    (void)kern_cuda_settle(cuda, NULL); /* only after a failure is there something to settle */
    cuda->device->ops->free(cuda->device, memory);
}

static enum status cuda_upload(struct kern_backend *b, void *to, const void *from, size_t n_bytes,
                               struct status_why *why)
{
    return kern_cuda_put(kern_cuda_of(b), to, from, n_bytes, why);
}

static enum status cuda_download(struct kern_backend *b, void *to, const void *from, size_t n_bytes,
                                 struct status_why *why)
{
    return kern_cuda_get(kern_cuda_of(b), to, from, n_bytes, why);
}

static void cuda_close(struct kern_backend *b)
{
    struct kern_cuda *cuda = kern_cuda_of(b);
    kern_cuda_cache_close(cuda);
    cuda->device->ops->free(cuda->device, cuda->deferred.memory);
    kern_cuda_tables_close(cuda);
    cuda->device->ops->free(cuda->device, cuda->scratch);
    cuda->device->ops->close(cuda->device);
    free(cuda->products.shapes);
    free(cuda);
}

/* The time of operations. They are queued, so the host's clock says nothing of them. Two marks on
 * the compute stream, around each, do. They are read when the ring of marks is full, or when the
 * times are wanted. */

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

static void begin_phase(struct kern_backend *b)
{
    struct kern_cuda *cuda = kern_cuda_of(b);
    struct kern_cuda_phases *p = &cuda->phases;
    if (p->n_begun - p->n_counted == KERN_CUDA_N_TIMED)
        count_oldest(cuda);
    p->marked[p->n_begun % KERN_CUDA_N_TIMED] =
        !cuda->device->ops->mark(cuda->device, mark_of(p->n_begun, 0), NULL);
}

static void end_phase(struct kern_backend *b, enum kern_phase phase)
{
    struct kern_cuda *cuda = kern_cuda_of(b);
    struct kern_cuda_phases *p = &cuda->phases;
    size_t i = p->n_begun++, slot = i % KERN_CUDA_N_TIMED;
    p->phase[slot] = phase;
    p->marked[slot] =
        p->marked[slot] && !cuda->device->ops->mark(cuda->device, mark_of(i, 1), NULL);
}

static void collect_times(struct kern_backend *b)
{
    struct kern_cuda *cuda = kern_cuda_of(b);
    while (cuda->phases.n_counted < cuda->phases.n_begun)
        count_oldest(cuda);
}

static struct kern_description cuda_describe(const struct kern_backend *b)
{
    const struct kern_cuda *cuda = (const struct kern_cuda *)b;
    return (struct kern_description){
        .device = cuda->device->name,
        .isa = "cuda",
        .products = cuda->products_name,
        .remarks = cuda->plan,
        .n_threads = 1,
        .own_memory = true,
        .tile_tokens = cuda->options.product_tokens,
        .batch_tokens = BATCH_TILES * cuda->options.product_tokens,
    };
}

#define ENTRY(name) .name = kern_cuda_##name,
static const struct kern_backend_ops cuda_ops = {.name = "cuda",
                                                 .close = cuda_close,
                                                 .alloc = cuda_alloc,
                                                 .free = cuda_free,
                                                 .upload = cuda_upload,
                                                 .download = cuda_download,
                                                 .preload = kern_cuda_preload,
                                                 .preload_heads = kern_cuda_preload_heads,
                                                 .forget = kern_cuda_forget,
                                                 .describe = cuda_describe,
                                                 .begin_phase = begin_phase,
                                                 .end_phase = end_phase,
                                                 .collect_times = collect_times,
                                                 KERN_BACKEND_OPERATIONS(ENTRY)};

/** Fill in what the caller left to us. */
static enum status choose(struct kern_cuda *cuda, struct status_why *why)
{
    struct kern_cuda_options *o = &cuda->options;
    size_t free_bytes, total_bytes;
    enum status status = cuda->device->ops->memory(cuda->device, &free_bytes, &total_bytes, why);
    if (status)
        return status;
    /* A quarter is left for activations and scores: 2 GB and more on any device that counts. */
    o->weight_bytes = o->weight_bytes ? o->weight_bytes : free_bytes / 4 * 3;
    o->panel_size = o->panel_size ? o->panel_size : PANEL_SIZE;
    o->n_slots = o->n_slots ? o->n_slots : N_SLOTS;
    o->product_tokens = o->product_tokens ? o->product_tokens : PRODUCT_TOKENS;
    o->product_step = o->product_step ? o->product_step : PRODUCT_STEP;
    o->parts_bytes = o->parts_bytes ? o->parts_bytes : PARTS_BYTES;
    snprintf(cuda->plan, sizeof cuda->plan,
             "%s: %.1f of %.1f GB free; weights take up to %.1f GB, beyond that they are streamed "
             "from host memory\n",
             cuda->device->name, 1e-9 * (double)free_bytes, 1e-9 * (double)total_bytes,
             1e-9 * (double)o->weight_bytes);
    /* Halves have the same bits on one device only, floats everywhere. With integers other weights
     * and attention are as with halves. */
    static const char *const forms[] = {
        [KERN_PRECISION_HIGH] = "f16x3", [KERN_PRECISION_FAST] = "f16"};
    cuda->in_integers = o->precision == KERN_PRECISION_HIGH &&
                        o->integers != KERN_CUDA_INTEGERS_NEVER &&
                        (o->integers == KERN_CUDA_INTEGERS_ALWAYS ||
                         kern_cuda_prefers_integers(cuda->device->compute_capability));
    if (kern_cuda_uses_halves(cuda))
        snprintf(cuda->products_name, sizeof cuda->products_name, "%s on %s",
                 cuda->in_integers ? "int16" : forms[o->precision], cuda->device->name);
    else
        snprintf(cuda->products_name, sizeof cuda->products_name, "float32");
    return STATUS_OK;
}

enum status kern_cuda_open(struct kern_backend **out, struct kern_cuda_device *device,
                           const struct kern_cuda_options *options, struct status_why *why)
{
    *out = NULL;
    struct kern_cuda *cuda = calloc(1, sizeof *cuda);
    if (!cuda) {
        device->ops->close(device);
        return status_fail(why, STATUS_MEMORY, "no memory for a backend");
    }
    cuda->base.ops = &cuda_ops;
    cuda->base.clock = &cuda->clock;
    cuda->clock.n_threads = 1;
    cuda->device = device;
    cuda->options = *options;
    enum status status = choose(cuda, why);
    if (!status)
        status = kern_cuda_cache_open(cuda, why);
    if (status) {
        kern_close(&cuda->base);
        return status;
    }
    *out = &cuda->base;
    return STATUS_OK;
}
