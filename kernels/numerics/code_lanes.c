/* Recorded rows to and from lanes: the scalar reference. */
#include "kernels/numerics/code_lanes.h"

#include <math.h>
#include <string.h>

#include "kernels/numerics/ops_scalar.h"
#include "kernels/numerics/terms.h"

static float scale_of(const uint16_t *record)
{
    float scale;
    memcpy(&scale, record, sizeof scale);
    return scale;
}

static float floor_of(const uint16_t *record)
{
    float floor;
    memcpy(&floor, record + 2, sizeof floor);
    return floor;
}

void kern_code_rows_read(struct kern_code_rows *rows, const uint16_t *records, size_t stride,
                         size_t n_lanes)
{
    for (size_t lane = 0; lane < KERN_LANES; lane++) {
        const uint16_t *record = records + (lane < n_lanes ? lane : 0) * stride;
        rows->codes[lane] = record + KERN_CODE_HEADER;
        rows->scale[lane] = scale_of(record);
        rows->floor[lane] = floor_of(record);
    }
}

float kern_code_log_prob(const uint16_t *record, size_t token)
{
    return fmaf(scale_of(record), (float)record[KERN_CODE_HEADER + token], floor_of(record));
}

void kern_scalar_decode_codes(const struct kern_code_rows *rows, const struct kern_decoded *out)
{
    for (size_t lane = 0; lane < KERN_LANES; lane++) {
        const uint16_t *codes = rows->codes[lane] + out->first_row;
        for (size_t i = 0; i < out->n_rows; i++)
            out->logits[i * out->stride + lane] =
                fmaf(rows->scale[lane], (float)codes[i], rows->floor[lane]);
    }
}

void kern_scalar_encode_codes(const struct kern_encoded_rows *rows,
                              const struct kern_logit_tile *tile)
{
    for (size_t lane = 0; lane < rows->n_lanes; lane++) {
        uint16_t *codes = rows->codes[lane] + tile->first_row;
        for (size_t i = 0; i < tile->n_rows; i++)
            codes[i] = kern_encode(tile->logits[i * tile->stride + lane], rows->floor[lane],
                                   rows->scale[lane]);
    }
}
