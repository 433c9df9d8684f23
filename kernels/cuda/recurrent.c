/* Recurrent layers. */
#include "kernels/cuda/context.h"

enum status kern_cuda_convolve(struct kern_backend *b, const struct kern_convolve *op,
                               struct status_why *why)
{
    (void)b;
    (void)op;
    return status_fail(why, STATUS_UNSUPPORTED, "no convolution on this device yet");
}

size_t kern_cuda_recur_bytes(struct kern_backend *b, const struct kern_recur *op)
{
    (void)b;
    (void)op;
    return 0;
}

enum status kern_cuda_recur(struct kern_backend *b, const struct kern_recur *op,
                            struct status_why *why)
{
    (void)b;
    (void)op;
    return status_fail(why, STATUS_UNSUPPORTED, "no recurrent layers on this device yet");
}
