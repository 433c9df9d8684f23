/** The numbers in front of a record: how far its codes reach, from a row's reductions. */
#ifndef KERNELS_NUMERICS_RECORD_SCALE_H
#define KERNELS_NUMERICS_RECORD_SCALE_H

#include <string.h>

#include "kernels/numerics/code_lanes.h"
#include "kernels/numerics/fmath.h"

/** How far below the largest logit the codes reach. */
#define KERN_RECORD_REACH 16.0f

struct kern_record_scale {
    float scale, floor; /* as the record has them */
    float lowest;       /* the logit of code 0 */
};

/** min, max: of the row's logits; sum: of e^(l - max). */
static inline struct kern_record_scale kern_record_scale_of(float min, float max, double sum)
{
    float log_sum = (float)kern_log(sum);
    float lowest = min > max - KERN_RECORD_REACH ? min : max - KERN_RECORD_REACH;
    return (struct kern_record_scale){
        .scale = (max - lowest) / KERN_CODE_MAX, .floor = lowest - max - log_sum, .lowest = lowest};
}

/** Write the numbers in front of the codes, and 0 behind an odd number of them. */
static inline void kern_record_write(uint16_t *record, size_t n_vocab,
                                     const struct kern_record_scale *scale)
{
    memcpy(record, &scale->scale, sizeof scale->scale);
    memcpy(record + 2, &scale->floor, sizeof scale->floor);
    if (n_vocab % 2 > 0)
        record[KERN_CODE_HEADER + n_vocab] = 0;
}

#endif
