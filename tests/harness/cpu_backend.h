/** A CPU backend, and float32 weights for it: for tests of operations. */
#ifndef TESTS_HARNESS_CPU_BACKEND_H
#define TESTS_HARNESS_CPU_BACKEND_H

#include "kernels/backend.h"
#include "kernels/cpu/cpu.h"
#include "kernels/types.h"
#include "tests/harness/require.h"

/** isa: the most that it uses, as far as the machine has it. */
static inline struct kern_backend *backend_open(enum kern_isa isa, unsigned n_threads)
{
    struct kern_cpu_options options = {.n_threads = n_threads, .isa_cap = isa};
    struct kern_backend *b = NULL;
    require(kern_cpu_open(&b, &options, NULL) == STATUS_OK);
    return b;
}

static inline struct kern_weight f32_matrix(const float *values, size_t n_rows, size_t n_cols)
{
    return (struct kern_weight){.type = GGUF_TYPE_F32,
                                .n_rows = n_rows,
                                .n_cols = n_cols,
                                .row_bytes = n_cols * sizeof *values,
                                .data = values,
                                .scale = 1.0f};
}

static inline struct kern_weight f32_row(const float *values, size_t n)
{
    return f32_matrix(values, 1, n);
}

#endif
