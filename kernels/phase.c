/* Operations begin and end: each counts into its phase. */
#include "kernels/implementation.h"

uint64_t kern_begin(struct kern_backend *b)
{
    if (b->ops->begin_phase)
        b->ops->begin_phase(b);
    return kern_clock_now();
}

enum status kern_end(struct kern_backend *b, enum kern_phase phase, uint64_t begun,
                     enum status status)
{
    if (b->ops->end_phase)
        b->ops->end_phase(b, phase);
    else
        kern_clock_count(b->clock, phase, kern_clock_now() - begun);
    return status;
}
