/*
 * For processors that are not x86-64: none of the instruction sets is there, and their sets of
 * kernels are empty. kern_kernels_build() takes the scalar set.
 */
#include "kernels/cpu/amx/amx.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/kernels.h"

const struct kern_kernels kern_kernels_avx2, kern_kernels_avx2_vnni;
const struct kern_kernels kern_kernels_avx512, kern_kernels_avx512_vnni, kern_kernels_avx512_pairs;
const struct kern_ops kern_ops_avx2, kern_ops_avx512;
const struct kern_amx_products kern_amx_hardware;

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

bool kern_amx_detect(void)
{
    return false;
}

bool kern_amx_request(void)
{
    return false;
}
