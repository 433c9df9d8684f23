#include "kernels/cpu/isa.h"

static const char *const isa_names[KERN_ISA_COUNT] = {"scalar", "avx2", "avx512"};

const char *kern_isa_name(enum kern_isa isa)
{
    return (unsigned)isa < KERN_ISA_COUNT ? isa_names[isa] : "unknown";
}
