/* For processors that are not x86-64: there is no AMX. */
#include "kernels/cpu/amx/amx.h"

const struct kern_amx_products kern_amx_hardware;

bool kern_amx_detect(void)
{
    return false;
}

bool kern_amx_request(void)
{
    return false;
}
