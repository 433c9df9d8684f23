/* Integers, bits, moves and predicates: as the PTX ISA says, they wrap, and a shift by the width
 * or more gives 0 or the sign. A division by zero gives all ones there, too. */
#include "tests/ptx/alu.h"

/* n: bits; U, S: the types; w: letter of the width; P: a type in which products do not overflow */
#define WIDTHS(X)                                                                                  \
    X(16, u16, s16, "h", u32)                                                                      \
    X(32, u32, s32, "w", u32)                                                                      \
    X(64, u64, s64, "d", u64)

#define SUMS(n, U, S, w, P)                                                                        \
    PTX_OP2(add_##n, U, U, U, a + b)                                                               \
    PTX_OP2(sub_##n, U, U, U, a - b)                                                               \
    PTX_OP2(mul_##n, U, U, U, (P)a *(P)b)                                                          \
    PTX_OP3(mad_##n, U, U, U, U, (P)a *(P)b + c)                                                   \
    PTX_OP1(neg_##n, U, U, 0 - a)                                                                  \
    PTX_OP1(abs_##n, U, U, (S)a < 0 ? 0 - a : a)                                                   \
    PTX_OP2(min_u##n, U, U, U, a < b ? a : b)                                                      \
    PTX_OP2(max_u##n, U, U, U, a > b ? a : b)                                                      \
    PTX_OP2(min_s##n, S, S, S, a < b ? a : b)                                                      \
    PTX_OP2(max_s##n, S, S, S, a > b ? a : b)                                                      \
    PTX_OP2(div_u##n, U, U, U, b ? a / b : (U)-1)                                                  \
    PTX_OP2(rem_u##n, U, U, U, b ? a % b : a)                                                      \
    PTX_OP2(div_s##n, S, S, S, b == 0 ? -1 : b == -1 ? (S)(0 - (U)a) : a / b)                      \
    PTX_OP2(rem_s##n, S, S, S, b == 0 ? a : b == -1 ? 0 : a % b)
#define SUM_ROWS(n, U, S, w, P)                                                                    \
    {"add.u" #n, w ">" w w, add_##n}, {"add.s" #n, w ">" w w, add_##n},                            \
        {"sub.u" #n, w ">" w w, sub_##n}, {"sub.s" #n, w ">" w w, sub_##n},                        \
        {"mul.lo.u" #n, w ">" w w, mul_##n}, {"mul.lo.s" #n, w ">" w w, mul_##n},                  \
        {"mad.lo.u" #n, w ">" w w w, mad_##n}, {"mad.lo.s" #n, w ">" w w w, mad_##n},              \
        {"neg.s" #n, w ">" w, neg_##n}, {"abs.s" #n, w ">" w, abs_##n},                            \
        {"min.u" #n, w ">" w w, min_u##n}, {"max.u" #n, w ">" w w, max_u##n},                      \
        {"min.s" #n, w ">" w w, min_s##n}, {"max.s" #n, w ">" w w, max_s##n},                      \
        {"div.u" #n, w ">" w w, div_u##n}, {"div.s" #n, w ">" w w, div_s##n},                      \
        {"rem.u" #n, w ">" w w, rem_u##n}, {"rem.s" #n, w ">" w w, rem_s##n},

#define BITS(n, U, S, w, P)                                                                        \
    PTX_OP2(and_##n, U, U, U, a &b)                                                                \
    PTX_OP2(or_##n, U, U, U, a | b)                                                                \
    PTX_OP2(xor_##n, U, U, U, a ^ b)                                                               \
    PTX_OP1(not_##n, U, U, ~a)                                                                     \
    PTX_OP2(shl_##n, U, U, u32, b >= n ? 0 : (P)a << (b % n))                                      \
    PTX_OP2(shr_u##n, U, U, u32, b >= n ? 0 : a >> (b % n))                                        \
    PTX_OP2(shr_s##n, S, S, u32, a >> (b >= n ? n - 1 : b))
#define BIT_ROWS(n, U, S, w, P)                                                                    \
    {"and.b" #n, w ">" w w, and_##n}, {"or.b" #n, w ">" w w, or_##n},                              \
        {"xor.b" #n, w ">" w w, xor_##n}, {"not.b" #n, w ">" w, not_##n},                          \
        {"shl.b" #n, w ">" w "w", shl_##n}, {"shr.b" #n, w ">" w "w", shr_u##n},                   \
        {"shr.u" #n, w ">" w "w", shr_u##n}, {"shr.s" #n, w ">" w "w", shr_s##n},

#define COMPARISONS(n, U, S, w, P)                                                                 \
    PTX_SETP(eq_##n, U, a == b)                                                                    \
    PTX_SETP(ne_##n, U, a != b)                                                                    \
    PTX_SETP(lt_u##n, U, a < b)                                                                    \
    PTX_SETP(le_u##n, U, a <= b)                                                                   \
    PTX_SETP(gt_u##n, U, a > b)                                                                    \
    PTX_SETP(ge_u##n, U, a >= b)                                                                   \
    PTX_SETP(lt_s##n, S, a < b)                                                                    \
    PTX_SETP(le_s##n, S, a <= b)                                                                   \
    PTX_SETP(gt_s##n, S, a > b)                                                                    \
    PTX_SETP(ge_s##n, S, a >= b)
#define COMPARISON_ROWS(n, U, S, w, P)                                                             \
    {"setp.eq.b" #n, "p>" w w, eq_##n}, {"setp.ne.b" #n, "p>" w w, ne_##n},                        \
        {"setp.eq.u" #n, "p>" w w, eq_##n}, {"setp.ne.u" #n, "p>" w w, ne_##n},                    \
        {"setp.eq.s" #n, "p>" w w, eq_##n}, {"setp.ne.s" #n, "p>" w w, ne_##n},                    \
        {"setp.lt.u" #n, "p>" w w, lt_u##n}, {"setp.le.u" #n, "p>" w w, le_u##n},                  \
        {"setp.gt.u" #n, "p>" w w, gt_u##n}, {"setp.ge.u" #n, "p>" w w, ge_u##n},                  \
        {"setp.lt.s" #n, "p>" w w, lt_s##n}, {"setp.le.s" #n, "p>" w w, le_s##n},                  \
        {"setp.gt.s" #n, "p>" w w, gt_s##n}, {"setp.ge.s" #n, "p>" w w, ge_s##n},

/* The bits of a register, whatever they stand for. */
#define MOVES(n, U, S, w, P)                                                                       \
    PTX_OP1(mov_##n, U, U, a)                                                                      \
    static void selp_##n(uint8_t *file, const uint32_t *at, uint32_t mask)                         \
    {                                                                                              \
        U *d = PTX_REG(U, 0);                                                                      \
        const U *pa = PTX_REG(U, 1), *pb = PTX_REG(U, 2);                                          \
        uint32_t p = *PTX_REG(uint32_t, 3);                                                        \
        PTX_EACH(U a = pa[i]; U b = pb[i]; d[i] = p >> i & 1 ? a : b;)                             \
    }
#define MOVE_ROWS(n, U, S, w, P)                                                                   \
    {"mov.b" #n, w ">" w, mov_##n}, {"mov.u" #n, w ">" w, mov_##n},                                \
        {"mov.s" #n, w ">" w, mov_##n}, {"mov.f" #n, w ">" w, mov_##n},                            \
        {"selp.b" #n, w ">" w w "p", selp_##n}, {"selp.u" #n, w ">" w w "p", selp_##n},            \
        {"selp.s" #n, w ">" w w "p", selp_##n}, {"selp.f" #n, w ">" w w "p", selp_##n},

WIDTHS(SUMS)
WIDTHS(BITS)
WIDTHS(COMPARISONS)
WIDTHS(MOVES)

static void halves_of_32(uint8_t *file, const uint32_t *at, uint32_t mask)
{
    u16 *low = PTX_REG(u16, 0), *high = PTX_REG(u16, 1);
    const u32 *pa = PTX_REG(u32, 2);
    PTX_EACH(u32 a = pa[i]; low[i] = (u16)a; high[i] = (u16)(a >> 16);)
}

PTX_OP2(wide_u16, u32, u16, u16, (u32)a *b)
PTX_OP2(wide_s16, s32, s16, s16, (s32)a *b)
PTX_OP2(wide_u32, u64, u32, u32, (u64)a *b)
PTX_OP2(wide_s32, s64, s32, s32, (s64)a *b)

/** Put the lowest `length` bits of `from` into `to` at `at`. */
static inline u64 insert(u64 from, u64 to, u32 at, u32 length, u32 width)
{
    at &= 255;
    length &= 255;
    u64 bits = length >= 64 ? ~(u64)0 : ((u64)1 << length) - 1;
    u64 mask = at >= width ? 0 : bits << at;
    return (to & ~mask) | ((at < 64 ? from << at : 0) & mask);
}

#define INSERT(n, U)                                                                               \
    static void bfi_##n(uint8_t *file, const uint32_t *at, uint32_t mask)                          \
    {                                                                                              \
        U *d = PTX_REG(U, 0);                                                                      \
        const U *pa = PTX_REG(U, 1), *pb = PTX_REG(U, 2);                                          \
        const u32 *pc = PTX_REG(u32, 3), *pe = PTX_REG(u32, 4);                                    \
        PTX_EACH(d[i] = (U)insert(pa[i], pb[i], pc[i], pe[i], n);)                                 \
    }
INSERT(32, u32)
INSERT(64, u64)

/** Four bytes of eight, as the four nibbles of `which` say; a nibble's bit 3: its sign alone. */
static inline u32 permute(u32 low, u32 high, u32 which)
{
    u64 both = low | (u64)high << 32;
    u32 result = 0;
    for (u32 i = 0; i < 4; i++) {
        u32 nibble = which >> 4 * i & 15, byte = (u32)(both >> 8 * (nibble & 7)) & 255;
        if (nibble & 8)
            byte = byte & 128 ? 255 : 0;
        result |= byte << 8 * i;
    }
    return result;
}
PTX_OP3(prmt, u32, u32, u32, u32, permute(a, b, c))

#define LOGIC(name, e)                                                                             \
    static void name(uint8_t *file, const uint32_t *at, uint32_t mask)                             \
    {                                                                                              \
        uint32_t a = *PTX_REG(uint32_t, 1), b = *PTX_REG(uint32_t, 2), *d = PTX_REG(uint32_t, 0);  \
        *d = (*d & ~mask) | ((e)&mask);                                                            \
    }
LOGIC(and_pred, a &b)
LOGIC(or_pred, a | b)
LOGIC(xor_pred, a ^ b)

static void not_pred(uint8_t *file, const uint32_t *at, uint32_t mask)
{
    uint32_t *d = PTX_REG(uint32_t, 0);
    *d = (*d & ~mask) | (~*PTX_REG(uint32_t, 1) & mask);
}

static void mov_pred(uint8_t *file, const uint32_t *at, uint32_t mask)
{
    uint32_t *d = PTX_REG(uint32_t, 0);
    *d = (*d & ~mask) | (*PTX_REG(uint32_t, 1) & mask);
}

static const struct ptx_form rows[] = {
    WIDTHS(SUM_ROWS) WIDTHS(BIT_ROWS) WIDTHS(COMPARISON_ROWS)
        WIDTHS(MOVE_ROWS){"mul.wide.u16", "w>hh", wide_u16},
    {"mul.wide.s16", "w>hh", wide_s16},
    {"mul.wide.u32", "d>ww", wide_u32},
    {"mul.wide.s32", "d>ww", wide_s32},
    {"bfi.b32", "w>wwww", bfi_32},
    {"bfi.b64", "d>ddww", bfi_64},
    {"mov.b32 {}", "hh>w", halves_of_32},
    {"prmt.b32", "w>www", prmt},
    {"and.pred", "p>pp", and_pred},
    {"or.pred", "p>pp", or_pred},
    {"xor.pred", "p>pp", xor_pred},
    {"not.pred", "p>p", not_pred},
    {"mov.pred", "p>p", mov_pred},
    {"cvta.to.global.u64", "d>d", mov_64},
    {"cvta.to.shared.u64", "d>d", mov_64},
    {"cvta.to.local.u64", "d>d", mov_64},
    {"cvta.local.u64", "d>d", mov_64},
};

PTX_FORMS(PTX_NAME(ptx_integers), rows);
