/** The CPU backend: how to open it, and its properties. */
#ifndef KERNELS_CPU_CPU_H
#define KERNELS_CPU_CPU_H

#include "base/status.h"
#include "kernels/cpu/isa.h"
#include "kernels/precision.h"

struct kern_backend;

/** Which code multiplies matrices. */
enum kern_gemm {
    KERN_GEMM_OWN,     /* one float32 FMA chain per output: the same bits everywhere */
    KERN_GEMM_OPENBLAS /* cblas_sgemm: bits depend on its version, threads and shapes */
};

/** What products are made of; see product.h. */
enum kern_products {
    KERN_PRODUCTS_FLOAT32,
    KERN_PRODUCTS_INT16,
    KERN_PRODUCTS_INT8,
    KERN_PRODUCTS_BF16_TRIPLES,
    KERN_PRODUCTS_BF16
};

/** Whether tile instructions may be used, besides isa_cap. */
enum kern_amx {
    KERN_AMX_NONE,
    KERN_AMX_HARDWARE, /* if there are any */
    KERN_AMX_EMULATED  /* in software: to test on any machine what AMX would give; very slow */
};

struct kern_cpu_options {
    unsigned n_threads;    /* 0: as many as the processors this process may run on */
    enum kern_isa isa_cap; /* use no ISA above this one */
    enum kern_gemm gemm;
    enum kern_precision precision;
    enum kern_amx amx;
};

/**
 * Open a CPU backend with its own thread pool; several may be open at once. kern_describe() says
 * what it uses: the ISA after the cap and what this CPU has, "amx" if products use AMX, which comes
 * on top of AVX-512; "openblas" as products with OpenBLAS; with "int16" and "int8" weights that are
 * no integers take float32. Its remarks are about options that could not be followed.
 * Fails: STATUS_MEMORY; STATUS_UNSUPPORTED if OpenBLAS was asked for and cannot be loaded;
 * STATUS_USAGE, STATUS_DEVICE if there cannot be so many threads.
 */
enum status kern_cpu_open(struct kern_backend **out, const struct kern_cpu_options *options,
                          struct status_why *why);

/** OpenBLAS's version string; "" while no backend has asked for it, so that it is not loaded. */
const char *kern_openblas_version(void);

#endif
