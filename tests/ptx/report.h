/** What the interpreter found, and which instructions it came to. */
#ifndef TESTS_PTX_REPORT_H
#define TESTS_PTX_REPORT_H

#include "tests/ptx/program.h"

/** A kernel's short name, as in kernels/cuda/kernels/list.h. Valid until the next call. */
const char *ptx_report_name(const struct ptx_kernel *k);

/** Write a line for each instruction: its kernel, its line in the PTX, how often a warp came to it.
 */
void ptx_report_coverage(const struct ptx_program *program, const char *path);

#endif
