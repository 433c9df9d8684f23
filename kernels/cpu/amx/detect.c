/* Whether AMX is there, and asking the system for it. Compiled for x86-64 only. */
#include <cpuid.h>
#include <stdint.h>

#include "base/system/system.h"
#include "kernels/cpu/amx/amx.h"

/* Leaf 7 of CPUID, EDX. */
enum { CPUID_AMX_BF16 = 1 << 22, CPUID_AMX_TILE = 1 << 24 };

/* Register sets that the system can save, as XCR0 numbers them. */
enum { XCR0_TILECFG = 17, XCR0_TILEDATA = 18 };

bool kern_amx_detect(void)
{
    const uint32_t wanted = CPUID_AMX_BF16 | CPUID_AMX_TILE, osxsave = 1u << 27;
    uint32_t eax, ebx, ecx, edx, low, high;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & osxsave))
        return false;
    if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) || (edx & wanted) != wanted)
        return false;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low >> XCR0_TILECFG & 1) && (low >> XCR0_TILEDATA & 1);
}

bool kern_amx_request(void)
{
    return base_system_keep_registers(XCR0_TILEDATA);
}
