#include "eval/reference/compact_rows.h"

#include <math.h>
#include <string.h>

#include "kernels/quant/bytes.h"

enum {
    TOP_EXPONENT = 14,      /* of the largest magnitude of a row, once it is scaled */
    LEAST_EXPONENT = -126,  /* of a float32 that is not subnormal */
    HALF_LEAST = -24,       /* exponent of the last bit of subnormal halves */
    HALF_MANTISSA_BITS = 10 /* after the leading one */
};

const char *eval_compact_kind_name(enum eval_compact_kind kind)
{
    return kind == EVAL_COMPACT_F16 ? "f16" : "f32";
}

uint64_t eval_compact_row_bytes(enum eval_compact_kind kind, uint64_t width)
{
    return kind == EVAL_COMPACT_F16 ? 4 + (width + 1) / 2 * 4 : width * 4;
}

/** The half nearest to x, |x| < 2^15 or not finite; of two equally near the even one. */
static uint16_t half_of(float x)
{
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    float magnitude = fabsf(x);
    if (isnan(x))
        return 0x7e00;
    if (isinf(x))
        return sign | 0x7c00;
    if (magnitude == 0)
        return sign;
    int exponent = ilogbf(magnitude);
    int last_bit = exponent - HALF_MANTISSA_BITS;
    last_bit = last_bit < HALF_LEAST ? HALF_LEAST : last_bit;
    /* Units of the last bit, at most 2^11: exact in a double, rounded by rint to even. The unit
       2^10 is the implied one, which raises the exponent, and so does 2^11 after rounding. */
    uint16_t units = (uint16_t)rint(ldexp((double)magnitude, -last_bit));
    return (uint16_t)(sign | ((last_bit - HALF_LEAST) * (1 << HALF_MANTISSA_BITS) + units));
}

/** The scale of a row; 1 where no element is finite and not 0. */
static float scale_of(const float *row, size_t width)
{
    float largest = 0;
    for (size_t i = 0; i < width; i++)
        if (isfinite(row[i]) && fabsf(row[i]) > largest)
            largest = fabsf(row[i]);
    if (largest == 0)
        return 1;
    int exponent = ilogbf(largest) - TOP_EXPONENT;
    return ldexpf(1, exponent < LEAST_EXPONENT ? LEAST_EXPONENT : exponent);
}

static void encode_row(uint8_t *out, const float *row, size_t width,
                       struct eval_compact_error *error)
{
    float scale = scale_of(row, width);
    struct eval_compact_error own = {0};
    memcpy(out, &scale, sizeof scale);
    out += sizeof scale;
    for (size_t i = 0; i < width; i++) {
        uint16_t half = half_of(row[i] / scale);
        memcpy(out + 2 * i, &half, sizeof half);
        double lost = (double)row[i] - (double)(scale * kern_half_to_float(half));
        own.lost += lost * lost;
        own.squares += (double)row[i] * (double)row[i];
    }
    if (width % 2)
        memset(out + 2 * width, 0, 2);
    own.largest = eval_compact_error_rms(&own);
    eval_compact_error_add(error, &own);
}

void eval_compact_rows_encode(enum eval_compact_kind kind, uint8_t *out, const float *rows,
                              size_t n_rows, size_t width, struct eval_compact_error *error)
{
    size_t row_bytes = (size_t)eval_compact_row_bytes(kind, width);
    if (kind == EVAL_COMPACT_F32)
        memcpy(out, rows, n_rows * row_bytes);
    else
        for (size_t r = 0; r < n_rows; r++)
            encode_row(out + r * row_bytes, rows + r * width, width, error);
}

static void decode_row(float *out, const uint8_t *bytes, size_t width)
{
    float scale;
    memcpy(&scale, bytes, sizeof scale);
    for (size_t i = 0; i < width; i++)
        out[i] = scale * kern_load_half(bytes + sizeof scale + 2 * i);
}

void eval_compact_rows_decode(enum eval_compact_kind kind, float *out, const uint8_t *bytes,
                              size_t n_rows, size_t width)
{
    size_t row_bytes = (size_t)eval_compact_row_bytes(kind, width);
    if (kind == EVAL_COMPACT_F32)
        memcpy(out, bytes, n_rows * row_bytes);
    else
        for (size_t r = 0; r < n_rows; r++)
            decode_row(out + r * width, bytes + r * row_bytes, width);
}

void eval_compact_error_add(struct eval_compact_error *sum, const struct eval_compact_error *more)
{
    sum->lost += more->lost;
    sum->squares += more->squares;
    if (!(more->largest <= sum->largest)) /* NaN, too */
        sum->largest = more->largest;
}

double eval_compact_error_rms(const struct eval_compact_error *error)
{
    return error->lost == 0 ? 0 : sqrt(error->lost / error->squares);
}
