/** The numbers in front of a record: how far its codes reach, from a row's reductions. */
#ifndef KERNELS_NUMERICS_RECORD_SCALE_H
#define KERNELS_NUMERICS_RECORD_SCALE_H

#include <string.h>

#include "kernels/numerics/code_lanes.h"
#include "kernels/numerics/fmath.h"

/** How far below the largest logit the codes reach where nothing else is asked for. */
#define KERN_RECORD_REACH 16.0f

struct kern_record_scale {
    float scale, floor; /* as the record has them */
    float lowest;       /* the logit of code 0 */
};

/** min, max: of the row's logits; sum: of e^(l - max); reach: 0 is KERN_RECORD_REACH. */
static inline struct kern_record_scale kern_record_scale_of(float min, float max, double sum,
                                                            float reach)
{
    float log_sum = (float)kern_log(sum), limit = max - (reach > 0 ? reach : KERN_RECORD_REACH);
    float lowest = min > limit ? min : limit;
    return (struct kern_record_scale){
        .scale = (max - lowest) / KERN_CODE_MAX, .floor = lowest - max - log_sum, .lowest = lowest};
}

/** Write the numbers in front of the codes, and 0 after an odd number of them. */
static inline void kern_record_write(uint16_t *record, size_t n_vocab,
                                     const struct kern_record_scale *scale)
{
    memcpy(record, &scale->scale, sizeof scale->scale);
    memcpy(record + 2, &scale->floor, sizeof scale->floor);
    if (n_vocab % 2 > 0)
        record[KERN_CODE_HEADER + n_vocab] = 0;
}

#endif
