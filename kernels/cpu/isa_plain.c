/* For processors that are neither x86-64 nor aarch64: there is the scalar set only. */
#include "kernels/cpu/kernels.h"

const struct kern_set kern_sets[KERN_ISA_COUNT] = {
    [KERN_ISA_SCALAR] = {"scalar", .own = &kern_kernels_scalar, .ops = &kern_ops_scalar},
};

enum kern_isa kern_isa_detect(void)
{
    return KERN_ISA_SCALAR;
}

bool kern_isa_has_vnni(enum kern_isa isa)
{
    (void)isa;
    return false;
}

bool kern_isa_adds_more(void)
{
    return false;
}
