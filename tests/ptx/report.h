/** What the interpreter found, and which instructions it came to. */
#ifndef TESTS_PTX_REPORT_H
#define TESTS_PTX_REPORT_H

#include <stdio.h>

#include "tests/ptx/program.h"
#include "tests/ptx/traffic.h"

/** A kernel's short name, as in kernels/cuda/kernels/list.h. Valid until the next call. */
const char *ptx_report_name(const struct ptx_kernel *k);

/** Write a line for each instruction: its kernel, its line in the PTX, how often a warp came to it.
 */
void ptx_report_coverage(const struct ptx_program *program, const char *path);

/**
 * Write a line of JSON for each kernel that ran: what it moved, and how often warps came to each
 * line of the PTX. Begin anew.   scene: a word for what ran.
 */
void ptx_report_counts(FILE *f, const char *scene, struct ptx_program *program,
                       struct ptx_traffic *traffic);

/** run_ptx.c: count from now on, and report what ran so far to f. */
void run_ptx_count(void);
void run_ptx_report(FILE *f, const char *scene);

#endif
