/* The sets of x86-64, and what this processor has, by CPUID. Compiled for x86-64 only. */
#include "kernels/cpu/kernels.h"

#include <cpuid.h>
#include <stdint.h>

const struct kern_set kern_sets[KERN_ISA_COUNT] = {
    [KERN_ISA_SCALAR] = {"scalar", .own = &kern_kernels_scalar, .ops = &kern_ops_scalar},
    [KERN_ISA_AVX2] = {"avx2", .own = &kern_kernels_avx2, .vnni = &kern_kernels_avx2_vnni,
                       .ops = &kern_ops_avx2},
    [KERN_ISA_AVX512] = {"avx512", .own = &kern_kernels_avx512, .vnni = &kern_kernels_avx512_vnni,
                         .pairs = &kern_kernels_avx512_pairs, .ops = &kern_ops_avx512},
};

/* Register sets that the operating system saves, as XCR0 reports them. */
enum {
    XCR0_SSE = 1 << 1,
    XCR0_AVX = 1 << 2,
    XCR0_OPMASK = 1 << 5,
    XCR0_ZMM_HIGH = 1 << 6, /* upper halves of zmm0 to zmm15 */
    XCR0_ZMM_16_31 = 1 << 7
};

enum { AVX_VNNI = 1 << 4 }; /* leaf 7, subleaf 1, EAX */

static uint64_t xcr0_read(void)
{
    uint32_t low = 0, high = 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

static bool has_all(uint64_t found, uint64_t wanted)
{
    return (found & wanted) == wanted;
}

enum kern_isa kern_isa_detect(void)
{
    const uint32_t leaf1_ecx = bit_FMA | bit_F16C | bit_AVX | bit_OSXSAVE;
    const uint32_t avx512_ebx = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
    const uint64_t ymm_saved = XCR0_SSE | XCR0_AVX;
    const uint64_t zmm_saved = ymm_saved | XCR0_OPMASK | XCR0_ZMM_HIGH | XCR0_ZMM_16_31;
    uint32_t eax, ebx, ecx, edx;

    /* XGETBV exists only where OSXSAVE is set, so that bit is asked for first. */
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !has_all(ecx, leaf1_ecx))
        return KERN_ISA_SCALAR;
    uint64_t saved = xcr0_read();
    if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) || !has_all(ebx, bit_AVX2) ||
        !has_all(saved, ymm_saved))
        return KERN_ISA_SCALAR;
    if (!has_all(ebx, avx512_ebx) || !has_all(saved, zmm_saved))
        return KERN_ISA_AVX2;
    return KERN_ISA_AVX512;
}

bool kern_isa_has_vnni(enum kern_isa isa)
{
    uint32_t eax, ebx, ecx, edx;
    if (isa == KERN_ISA_SCALAR || isa > kern_isa_detect() ||
        !__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx))
        return false;
    if (isa == KERN_ISA_AVX512)
        return has_all(ecx, bit_AVX512VNNI);
    return eax >= 1 && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) && has_all(eax, AVX_VNNI);
}

bool kern_isa_adds_more(void)
{
    uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
    return __get_cpuid(0, &eax, &ebx, &ecx, &edx) && ebx == signature_AMD_ebx &&
           ecx == signature_AMD_ecx && edx == signature_AMD_edx;
}
