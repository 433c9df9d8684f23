/* Conversions. Integers are cut or extended; to floating point the nearest, ties to even. */
#include "tests/ptx/alu.h"

#define FROM_INTEGERS(X, ...)                                                                      \
    X(u8, u8, "h", 2, __VA_ARGS__)                                                                 \
    X(s8, s8, "h", 2, __VA_ARGS__)                                                                 \
    X(u16, u16, "h", 1, __VA_ARGS__)                                                               \
    X(s16, s16, "h", 1, __VA_ARGS__)                                                               \
    X(u32, u32, "w", 1, __VA_ARGS__)                                                               \
    X(s32, s32, "w", 1, __VA_ARGS__)                                                               \
    X(u64, u64, "d", 1, __VA_ARGS__)                                                               \
    X(s64, s64, "d", 1, __VA_ARGS__)

/* stride: values of that type in what a lane's register holds. */
#define CONVERT(s, S, w, stride, d, D)                                                             \
    static void d##_of_##s(uint8_t *file, const uint32_t *at, uint32_t mask)                       \
    {                                                                                              \
        D *to = PTX_REG(D, 0);                                                                     \
        const S *from = PTX_REG(S, 1);                                                             \
        PTX_EACH(S x = from[i * (stride)]; to[i] = (D)x;)                                          \
    }
#define INTEGER_ROW(s, S, w, stride, d, wide) {"cvt." #d "." #s, wide ">" w, d##_of_##s},
#define FLOAT_ROW(s, S, w, stride, d, wide)   {"cvt.rn." #d "." #s, wide ">" w, d##_of_##s},

FROM_INTEGERS(CONVERT, u16, u16)
FROM_INTEGERS(CONVERT, s16, s16)
FROM_INTEGERS(CONVERT, u32, u32)
FROM_INTEGERS(CONVERT, s32, s32)
FROM_INTEGERS(CONVERT, u64, u64)
FROM_INTEGERS(CONVERT, s64, s64)
FROM_INTEGERS(CONVERT, f32, f32)
FROM_INTEGERS(CONVERT, f64, f64)

/* Towards zero, the nearest that there is; NaN gives 0. */
PTX_OP1(u32_of_f32, u32, f32, !(a > 0) ? 0 : a >= 0x1p32f ? 0xffffffffu : (u32)a)
PTX_OP1(s32_of_f32, s32, f32,
        a != a         ? 0
        : a >= 0x1p31f ? INT32_MAX
        : a < -0x1p31f ? INT32_MIN
                       : (s32)a)
PTX_OP1(near_s32_of_f32, s32, f32,
        a != a         ? 0
        : a >= 0x1p31f ? INT32_MAX
        : a < -0x1p31f ? INT32_MIN
                       : (s32)nearbyintf(a))
PTX_OP1(u32_of_f64, u32, f64, !(a > 0) ? 0 : a >= 0x1p32 ? 0xffffffffu : (u32)a)
PTX_OP1(f64_of_f32, f64, f32, a)
PTX_OP1(f32_of_f64, f32, f64, a)

/** The nearest number with a significand of `bits` bits fewer, as the bits of a float32. */
static inline u32 round_off(u32 x, u32 bits)
{
    return x + (((u32)1 << (bits - 1)) - 1) + (x >> bits & 1);
}

static inline u32 bits_of(f32 x)
{
    u32 bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline u16 half_of(f32 x)
{
    u32 bits = bits_of(x), sign = bits >> 16 & 0x8000u;
    bits &= 0x7fffffffu;
    if (bits > 0x7f800000u)
        return 0x7fff;
    u32 rounded = round_off(bits, 13);
    if (rounded >= 0x47800000u) /* 2^16 */
        return (u16)(sign | 0x7c00u);
    if (bits >= 0x38800000u) /* 2^-14 */
        return (u16)(sign | (rounded - 0x38000000u) >> 13);
    f32 magnitude = fabsf(x) * 0x1p24f; /* a half's subnormals are multiples of 2^-24 */
    return (u16)(sign | (u32)nearbyintf(magnitude));
}

static inline f32 of_half(u32 half)
{
    u32 magnitude = half & 0x7fffu;
    f32 x = (f32)(half & 0x3ffu) * 0x1p-24f; /* a subnormal */
    u32 bits = magnitude > 0x7c00u ? 0x7fffffffu : (magnitude << 13) + 0x38000000u;
    if (magnitude == 0x7c00u)
        bits = 0x7f800000u;
    if (magnitude >= 0x400u)
        memcpy(&x, &bits, sizeof x);
    return half & 0x8000u && magnitude <= 0x7c00u ? -x : x;
}

static inline u32 bf16_of(f32 x)
{
    u32 bits = bits_of(x);
    return (bits & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : round_off(bits, 16) >> 16;
}

PTX_OP1(f16_of_f32, u16, f32, half_of(a))
PTX_OP1(f32_of_f16, f32, u16, of_half(a))
PTX_OP2(bf16x2_of_f32, u32, f32, f32, bf16_of(a) << 16 | bf16_of(b))

static const struct ptx_form rows[] = {
    FROM_INTEGERS(INTEGER_ROW, u16, "h") FROM_INTEGERS(INTEGER_ROW, s16, "h")
        FROM_INTEGERS(INTEGER_ROW, u32, "w") FROM_INTEGERS(INTEGER_ROW, s32, "w")
            FROM_INTEGERS(INTEGER_ROW, u64, "d") FROM_INTEGERS(INTEGER_ROW, s64, "d")
                FROM_INTEGERS(FLOAT_ROW, f32, "w")
                    FROM_INTEGERS(FLOAT_ROW, f64, "d"){"cvt.rzi.u32.f32", "w>w", u32_of_f32},
    {"cvt.rzi.s32.f32", "w>w", s32_of_f32},
    {"cvt.rni.s32.f32", "w>w", near_s32_of_f32},
    {"cvt.rzi.u32.f64", "w>d", u32_of_f64},
    {"cvt.f64.f32", "d>w", f64_of_f32},
    {"cvt.rn.f32.f64", "w>d", f32_of_f64},
    {"cvt.rn.f16.f32", "h>w", f16_of_f32},
    {"cvt.f32.f16", "w>h", f32_of_f16},
    {"cvt.rn.bf16x2.f32", "w>ww", bf16x2_of_f32},
};

PTX_FORMS(PTX_NAME(ptx_conversions), rows);
