/* Opening, closing and memory of the CPU backend; the operations have files of their own. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/cpu/gemm/blas.h"
#include "kernels/cpu/memory.h"
#include "kernels/cpu/operations.h"

enum {
    L2_BYTES_DEFAULT = 256 << 10 /* where the system does not say: the least of any AVX2 core */
};

static size_t l2_bytes(void)
{
    long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return bytes > L2_BYTES_DEFAULT ? (size_t)bytes : L2_BYTES_DEFAULT;
}

static enum status cpu_alloc(struct kern_backend *b, void **out, size_t n_bytes,
                             struct status_why *why)
{
    (void)b;
    *out = kern_memory_new(n_bytes);
    if (!*out)
        return status_fail(why, STATUS_MEMORY, "no memory for %zu bytes", n_bytes);
    return STATUS_OK;
}

static void cpu_free(struct kern_backend *b, void *memory)
{
    (void)b;
    kern_memory_free(memory);
}

static enum status cpu_copy(struct kern_backend *b, void *to, const void *from, size_t n_bytes,
                            struct status_why *why)
{
    (void)b;
    (void)why;
    memcpy(to, from, n_bytes);
    return STATUS_OK;
}

static void cpu_close(struct kern_backend *b)
{
    struct kern_cpu *cpu = kern_cpu_of(b);
    base_pool_close(cpu->pool);
    kern_memory_free(cpu->scratch);
    free(cpu);
}

static struct kern_description cpu_describe(const struct kern_backend *b)
{
    static const char *const names[] = {[KERN_PRODUCTS_FLOAT32] = "float32",
                                        [KERN_PRODUCTS_INT16] = "int16",
                                        [KERN_PRODUCTS_INT8] = "int8",
                                        [KERN_PRODUCTS_BF16_TRIPLES] = "bf16x3",
                                        [KERN_PRODUCTS_BF16] = "bf16"};
    const struct kern_cpu *cpu = (const struct kern_cpu *)b;
    enum kern_products kind = cpu->integers[0].multiply ? cpu->integers[0].kind : cpu->product.kind;
    return (struct kern_description){
        .device = "cpu",
        .isa = cpu->product.n_parts > 0 ? "amx" : kern_isa_name(cpu->isa),
        .products = cpu->sgemm ? "openblas" : names[kind],
        .remarks = cpu->remarks,
        .n_threads = base_pool_n_threads(cpu->pool),
        .pool = cpu->pool,
    };
}

#define ENTRY(name) .name = kern_cpu_##name,
static const struct kern_backend_ops cpu_ops = {.name = "cpu",
                                                .close = cpu_close,
                                                .alloc = cpu_alloc,
                                                .free = cpu_free,
                                                .upload = cpu_copy,
                                                .download = cpu_copy,
                                                .describe = cpu_describe,
                                                KERN_BACKEND_OPERATIONS(ENTRY)};

static void choose_products(struct kern_cpu *cpu, const struct kern_cpu_options *options)
{
    struct kern_cpu_options high = *options;
    if (high.precision == KERN_PRECISION_FAST)
        high.precision = KERN_PRECISION_HIGH;
    kern_product_choose(&cpu->attention_product, &cpu->kernels, &high, &cpu->remarks);
    kern_product_choose(&cpu->product, &cpu->kernels, options, &cpu->remarks);
    for (int i = 0; i < KERN_ROOMS; i++)
        kern_product_choose_integers(&cpu->integers[i], &cpu->kernels, options, &cpu->product,
                                     kern_rooms[i]);
    kern_product_choose_words(&cpu->words, &cpu->kernels, &cpu->integers[0]);
    kern_product_choose_integers(&cpu->head_integers, &cpu->kernels, &high, &cpu->product, 0);
    cpu->long_integers = cpu->head_integers;
    cpu->long_integers.largest = KERN_INT16_LONG_MAX;
    if (options->precision == KERN_PRECISION_FAST && cpu->head_integers.multiply) {
        cpu->attention_product = cpu->head_integers;
        cpu->attention_product.largest = KERN_ATTENTION_MOST;
    }
}

enum status kern_cpu_open(struct kern_backend **out, const struct kern_cpu_options *options,
                          struct status_why *why)
{
    *out = NULL;
    struct kern_cpu *cpu = calloc(1, sizeof *cpu);
    if (!cpu)
        return status_fail(why, STATUS_MEMORY, "no memory for a backend");
    cpu->base.ops = &cpu_ops;
    cpu->base.clock = &cpu->clock;
    cpu->l2_bytes = l2_bytes();
    cpu->isa = kern_kernels_build(&cpu->kernels, options->isa_cap);
    choose_products(cpu, options);
    enum status status = base_pool_open(&cpu->pool, options->n_threads, why);
    if (!status && options->gemm == KERN_GEMM_OPENBLAS)
        status = kern_openblas_load(&cpu->sgemm, base_pool_n_threads(cpu->pool), why);
    if (status) {
        kern_close(&cpu->base);
        return status;
    }
    cpu->clock.n_threads = base_pool_n_threads(cpu->pool);
    *out = &cpu->base;
    return STATUS_OK;
}
