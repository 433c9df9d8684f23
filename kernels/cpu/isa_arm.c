/* The sets of aarch64, and what this processor has, by the system's word. Compiled for it only. */
#include "base/system/system.h"
#include "kernels/cpu/kernels.h"

const struct kern_set kern_sets[KERN_ISA_COUNT] = {
    [KERN_ISA_SCALAR] = {"scalar", .own = &kern_kernels_scalar, .ops = &kern_ops_scalar},
    [KERN_ISA_NEON] = {"neon", .own = &kern_kernels_neon, .ops = &kern_ops_neon},
    [KERN_ISA_DOTPROD] = {"dotprod", .own = &kern_kernels_dotprod, .ops = &kern_ops_neon},
    [KERN_ISA_I8MM] = {"i8mm", .own = &kern_kernels_i8mm, .ops = &kern_ops_neon},
};

enum kern_isa kern_isa_detect(void)
{
    unsigned has = base_system_instructions();
    if (!(has & BASE_SYSTEM_DOTPROD))
        return KERN_ISA_NEON;
    return has & BASE_SYSTEM_I8MM ? KERN_ISA_I8MM : KERN_ISA_DOTPROD;
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
