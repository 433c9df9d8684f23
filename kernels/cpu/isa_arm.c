/* The sets of aarch64, and what this processor has, by the system's word. Compiled for it only. */
#include "kernels/cpu/kernels.h"

#include <asm/hwcap.h>
#include <sys/auxv.h>

const struct kern_set kern_sets[KERN_ISA_COUNT] = {
    [KERN_ISA_SCALAR] = {"scalar", .own = &kern_kernels_scalar, .ops = &kern_ops_scalar},
    [KERN_ISA_NEON] = {"neon", .own = &kern_kernels_neon, .ops = &kern_ops_neon},
};

enum kern_isa kern_isa_detect(void)
{
    return getauxval(AT_HWCAP) & HWCAP_ASIMD ? KERN_ISA_NEON : KERN_ISA_SCALAR;
}

/* The two below ask for instructions of x86-64. */
bool kern_isa_has_vnni(enum kern_isa isa)
{
    (void)isa;
    return false;
}

bool kern_isa_adds_more(void)
{
    return false;
}
