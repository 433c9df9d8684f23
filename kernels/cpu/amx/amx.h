/**
 * Products in bfloat16 by AMX's tile instructions, and by a software model of them.
 *
 * microkernel.h is compiled twice: hardware.c with the instructions (tile_hardware.h), emulated.c
 * with what Intel's manual says that they do (tile_emulated.h). So everything but the
 * instructions is tested on machines that do not have them.
 */
#ifndef KERNELS_CPU_AMX_AMX_H
#define KERNELS_CPU_AMX_AMX_H

#include <stdbool.h>

#include "kernels/cpu/kernels.h"

/**
 * acc (+)= w x with w: groups of 32 rows, 32 * w_row floats apart, and x: one panel, both packed
 * by bf16_pack_row and bf16_pack_panel with one part or two. acc, n_rows, n_k, resume, narrow and
 * next_x are those of kern_fma_tile; calls for the pieces of a long row begin at multiples of 32.
 */
struct kern_amx_products {
    kern_fma_tile_fn *multiply_one;    /* one part: hi hi */
    kern_fma_tile_fn *multiply_triple; /* two: lo hi + hi hi + hi lo */
};
extern const struct kern_amx_products kern_amx_hardware, kern_amx_emulated;

enum kern_amx_state {
    KERN_AMX_ABSENT,  /* CPUID does not have it, or the system does not save its registers */
    KERN_AMX_REFUSED, /* the system does not let this process use it */
    KERN_AMX_WRONG,   /* products by it are not what they should be */
    KERN_AMX_WORKS
};

/**
 * Look for AMX with bfloat16 by its feature bits, ask the system for it and compare a small
 * product of each kind with sums in double. From then on all threads of the process may use it.
 */
enum kern_amx_state kern_amx_try(const struct kern_kernels *kernels);

/** Whether this processor has it and the system saves its registers. */
bool kern_amx_detect(void);

/** Ask the system for it, for all threads of the process; false if it refuses. */
bool kern_amx_request(void);

/** Whether products by `amx` are right: the comparison of kern_amx_try(). */
bool kern_amx_is_right(const struct kern_amx_products *amx, const struct kern_kernels *kernels);

#endif
