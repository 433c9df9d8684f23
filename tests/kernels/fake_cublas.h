/**
 * A library with cuBLASLt's name and the functions that are used of it, which multiplies on the
 * host and behaves as it is told. fake_cublas.c is built as a shared library; `fake_cublas` is in
 * there.
 */
#ifndef TESTS_KERNELS_FAKE_CUBLAS_H
#define TESTS_KERNELS_FAKE_CUBLAS_H

#include <cublasLt.h>
#include <stdbool.h>

/** Algorithms have numbers; a mask has a bit for each. */
struct fake_cublas {
    int n_algorithms;        /* that are proposed */
    bool reversed;           /* the last number comes first */
    unsigned splitting;      /* mask: sums in several pieces */
    unsigned unusable;       /* mask: proposed, but with a state that is not success */
    unsigned refused;        /* mask: the check refuses them */
    unsigned refused_late;   /* mask: the product refuses them */
    unsigned failing;        /* mask: the product fails */
    unsigned planned_only;   /* mask: refused for other sizes than those that were proposed for */
    unsigned other_bits;     /* mask: results are off by 2^-20 of them */
    unsigned slow;           /* mask: the product takes two milliseconds */
    size_t workspace;        /* bytes that each needs */
    size_t larger_workspace; /* that it needs for other sizes than those, if not 0 */
    cublasStatus_t create, heuristic, layout; /* what these return */
    /* What was seen: */
    int n_alive; /* objects that were made and not destroyed */
    int n_products, last;
};

#endif
