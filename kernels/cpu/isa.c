#include "kernels/cpu/kernels.h"

const char *kern_isa_name(enum kern_isa isa)
{
    return (unsigned)isa < KERN_ISA_COUNT ? kern_sets[isa].name : "unknown";
}
