/* Floating point, rounded to nearest. A float32 result that is NaN is the one NaN that a GPU
 * gives. min and max leave a NaN out, and take -0 for less than 0. */
#include "tests/ptx/alu.h"

static inline f32 float_of(u32 bits)
{
    f32 x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline u32 bits_of(f32 x)
{
    u32 bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline f32 one_nan(f32 x)
{
    return float_of(x != x ? 0x7fffffffu : bits_of(x));
}

#define SAME(x) (x)

#define EXTREMES(t, nan)                                                                           \
    static inline t least_##t(t a, t b)                                                            \
    {                                                                                              \
        if (a != a || b != b)                                                                      \
            return nan(a != a ? b : a);                                                            \
        return a < b || (a == b && signbit(a)) ? a : b;                                            \
    }                                                                                              \
    static inline t most_##t(t a, t b)                                                             \
    {                                                                                              \
        if (a != a || b != b)                                                                      \
            return nan(a != a ? b : a);                                                            \
        return a > b || (a == b && !signbit(a)) ? a : b;                                           \
    }
EXTREMES(f32, one_nan)
EXTREMES(f64, SAME)

#define FLOATS(t, nan, one, fma_of, sqrt_of)                                                       \
    PTX_OP2(add_##t, t, t, t, nan(a + b))                                                          \
    PTX_OP2(sub_##t, t, t, t, nan(a - b))                                                          \
    PTX_OP2(mul_##t, t, t, t, nan(a *b))                                                           \
    PTX_OP2(div_##t, t, t, t, nan(a / b))                                                          \
    PTX_OP3(fma_##t, t, t, t, t, nan(fma_of(a, b, c)))                                             \
    PTX_OP2(min_##t, t, t, t, least_##t(a, b))                                                     \
    PTX_OP2(max_##t, t, t, t, most_##t(a, b))                                                      \
    PTX_OP1(rcp_##t, t, t, nan(one / a))                                                           \
    PTX_OP1(sqrt_##t, t, t, nan(sqrt_of(a)))                                                       \
    PTX_SETP(eq_##t, t, a == b)                                                                    \
    PTX_SETP(ne_##t, t, a<b || a> b)                                                               \
    PTX_SETP(lt_##t, t, a < b)                                                                     \
    PTX_SETP(le_##t, t, a <= b)                                                                    \
    PTX_SETP(gt_##t, t, a > b)                                                                     \
    PTX_SETP(ge_##t, t, a >= b)                                                                    \
    PTX_SETP(equ_##t, t, !(a < b || a > b))                                                        \
    PTX_SETP(neu_##t, t, a != b)                                                                   \
    PTX_SETP(ltu_##t, t, !(a >= b))                                                                \
    PTX_SETP(leu_##t, t, !(a > b))                                                                 \
    PTX_SETP(gtu_##t, t, !(a <= b))                                                                \
    PTX_SETP(geu_##t, t, !(a < b))                                                                 \
    PTX_SETP(num_##t, t, a == a && b == b)                                                         \
    PTX_SETP(nan_##t, t, a != a || b != b)
#define COMPARE(op, t, w) {"setp." #op "." #t, "p>" w w, op##_##t},
#define FLOAT_ROWS(t, w)                                                                           \
    {"add.rn." #t, w ">" w w, add_##t}, {"sub.rn." #t, w ">" w w, sub_##t},                        \
        {"mul.rn." #t, w ">" w w, mul_##t}, {"div.rn." #t, w ">" w w, div_##t},                    \
        {"add." #t, w ">" w w, add_##t}, {"sub." #t, w ">" w w, sub_##t},                          \
        {"mul." #t, w ">" w w, mul_##t}, {"fma.rn." #t, w ">" w w w, fma_##t},                     \
        {"min." #t, w ">" w w, min_##t}, {"max." #t, w ">" w w, max_##t},                          \
        {"rcp.rn." #t, w ">" w, rcp_##t}, {"sqrt.rn." #t, w ">" w, sqrt_##t},                      \
        {"neg." #t, w ">" w, neg_##t}, {"abs." #t, w ">" w, abs_##t},                              \
        COMPARE(eq, t, w) COMPARE(ne, t, w) COMPARE(lt, t, w) COMPARE(le, t, w) COMPARE(gt, t, w)  \
            COMPARE(ge, t, w) COMPARE(equ, t, w) COMPARE(neu, t, w) COMPARE(ltu, t, w)             \
                COMPARE(leu, t, w) COMPARE(gtu, t, w) COMPARE(geu, t, w) COMPARE(num, t, w)        \
                    COMPARE(nan, t, w)

FLOATS(f32, one_nan, 1.0f, fmaf, sqrtf)
FLOATS(f64, SAME, 1.0, fma, sqrt)

/* The sign bit alone, of a NaN too. */
PTX_OP1(neg_f32, u32, u32, a ^ 0x80000000u)
PTX_OP1(abs_f32, u32, u32, a & 0x7fffffffu)
PTX_OP1(neg_f64, u64, u64, a ^ (u64)1 << 63)
PTX_OP1(abs_f64, u64, u64, a & ~((u64)1 << 63))

PTX_OP2(copysign_f32, u32, u32, u32, (a & 0x80000000u) | (b & 0x7fffffffu))

/** a + b, rounded towards zero. The sum in double is off by `rest`. */
static inline f32 add_towards_zero(f32 a, f32 b)
{
    double first = (double)a, second = (double)b, sum = first + second, of_second = sum - first;
    double rest = (first - (sum - of_second)) + (second - of_second);
    f32 rounded = (f32)sum;
    if (!isfinite(sum))
        return one_nan(rounded);
    bool beyond = fabs((double)rounded) > fabs(sum) ||
                  ((double)rounded == sum && (sum > 0 ? rest < 0 : rest > 0));
    return beyond ? nextafterf(rounded, 0.0f) : rounded;
}
PTX_OP2(add_rz_f32, f32, f32, f32, add_towards_zero(a, b))
PTX_OP1(truncate_f32, f32, f32, one_nan(truncf(a)))

static const struct ptx_form rows[] = {
    FLOAT_ROWS(f32, "w") FLOAT_ROWS(f64, "d"){"copysign.f32", "w>ww", copysign_f32},
    {"add.rz.f32", "w>ww", add_rz_f32},
    {"cvt.rzi.f32.f32", "w>w", truncate_f32}};

PTX_FORMS(PTX_NAME(ptx_floats), rows);
