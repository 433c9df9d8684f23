/* A build without CUDA: there are no devices. */
#include "kernels/cuda/device/device.h"

enum status kern_cuda_device_open(struct kern_cuda_device **out, unsigned index,
                                  struct status_why *why)
{
    *out = NULL;
    return status_fail(why, STATUS_DEVICE,
                       "CUDA device %u cannot be used: this program was built without CUDA; build "
                       "it where nvcc is installed, or use --device cpu",
                       index);
}

unsigned kern_cuda_n_devices(void)
{
    return 0;
}
