/*
 * What the lanes of a warp do together: shuffles, votes and the products of tensor cores. The
 * scheduler (warp.c) has seen to it that all lanes are here.
 */
#include "tests/ptx/alu.h"

/* d|p, a, b, c, members: lane i takes a of another lane; p says whether there is one. */
#define SHUFFLE(name, from)                                                                        \
    static void name(uint8_t *file, const uint32_t *at, uint32_t mask)                             \
    {                                                                                              \
        u32 *d = PTX_REG(u32, 0), *valid = PTX_REG(u32, 1), found = 0, values[PTX_LANES];          \
        memcpy(values, PTX_REG(u32, 2), sizeof values);                                            \
        for (u32 i = 0; i < PTX_LANES; i++) {                                                      \
            u32 b = PTX_REG(u32, 3)[i] & 31, c = PTX_REG(u32, 4)[i];                               \
            u32 segment = c >> 8 & 31, first = i & segment, last = first | (c & 31 & ~segment);    \
            u32 lane = (from);                                                                     \
            bool is_valid = lane <= last;                                                          \
            found |= (u32)is_valid << i;                                                           \
            d[i] = values[is_valid ? lane : i];                                                    \
        }                                                                                          \
        *valid = (*valid & ~mask) | (found & mask);                                                \
    }
SHUFFLE(shfl_bfly, i ^ b)
SHUFFLE(shfl_down, i + b)
SHUFFLE(shfl_idx, first | (b & ~segment))

static void vote_ballot(uint8_t *file, const uint32_t *at, uint32_t mask)
{
    u32 *d = PTX_REG(u32, 0), votes = *PTX_REG(u32, 1) & mask;
    for (u32 i = 0; i < PTX_LANES; i++)
        d[i] = votes;
}

static void vote_any(uint8_t *file, const uint32_t *at, uint32_t mask)
{
    *PTX_REG(u32, 0) = *PTX_REG(u32, 1) & mask ? PTX_ALL : 0;
}

static void vote_all(uint8_t *file, const uint32_t *at, uint32_t mask)
{
    *PTX_REG(u32, 0) = (*PTX_REG(u32, 1) & mask) == mask ? PTX_ALL : 0;
}

static inline f32 bf16(u32 pair, u32 which)
{
    u32 bits = which ? pair & 0xffff0000u : pair << 16;
    f32 x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline f32 towards_zero(f64 x)
{
    f32 rounded = (f32)x;
    if (!(fabs((f64)rounded) > fabs(x)))
        return rounded;
    return nextafterf(rounded, 0.0f);
}

enum { ROWS = 16, COLUMNS = 8, DEPTH = 16 };

/** Fragments as in the PTX ISA: g = lane / 4 and q = lane % 4 say which numbers a lane has. */
static void take_fragments(uint8_t *file, const uint32_t *at, f32 a[ROWS][DEPTH],
                           f64 b[DEPTH][COLUMNS])
{
    for (u32 i = 0; i < 8; i++) {
        const u32 *pairs = PTX_REG(u32, 4 + i / 2);
        u32 row = i / 2 % 2 * 8, k = i / 4 * 8 + i % 2;
        for (u32 lane = 0; lane < PTX_LANES; lane++)
            a[row + lane / 4][k + 2 * (lane % 4)] = bf16(pairs[lane], i % 2);
    }
    for (u32 i = 0; i < 4; i++) {
        const u32 *pairs = PTX_REG(u32, 8 + i / 2);
        u32 k = i / 2 * 8 + i % 2;
        for (u32 lane = 0; lane < PTX_LANES; lane++)
            b[k + 2 * (lane % 4)][lane / 4] = (f64)bf16(pairs[lane], i % 2);
    }
}

/**
 * d{4}, a{4}, b{2}, c{4}. How a tensor core adds is not documented; kernels/cuda/kernels/mma.h says
 * what is known. Here: exact products are added to c in float64, then rounded towards zero.
 */
static void mma_bf16(uint8_t *file, const uint32_t *at, uint32_t mask)
{
    (void)mask;
    f32 a[ROWS][DEPTH];
    f64 b[DEPTH][COLUMNS];
    take_fragments(file, at, a, b);
    for (u32 row = 0; row < ROWS; row++) {
        f64 sums[COLUMNS];
        u32 reg = row / 8 * 2, lane = row % 8 * 4;
        for (u32 j = 0; j < COLUMNS; j++)
            sums[j] = (f64)PTX_REG(f32, 10 + reg + j % 2)[lane + j / 2];
        for (u32 k = 0; k < DEPTH; k++) {
            f64 x = (f64)a[row][k];
            for (u32 j = 0; j < COLUMNS; j++)
                sums[j] += x * b[k][j];
        }
        for (u32 j = 0; j < COLUMNS; j++)
            PTX_REG(f32, reg + j % 2)[lane + j / 2] = towards_zero(sums[j]);
    }
}

/** Four columns of a lane's fragment. */
static inline void bytes(s8 *to, u32 word)
{
    for (u32 i = 0; i < 4; i++)
        to[i] = (s8)(word >> 8 * i & 255);
}

/**
 * d{4}, a{2 depth / 16}, b{depth / 16}, c{4}: integers of 8 bits, sums modulo 2^32 in any order.
 * Fragments as in the PTX ISA for m16n8k16 and m16n8k32 of .s8: register r + 2 h of a is row
 * g + 8 r, columns 16 h + 4 q on, register h of b column g, rows likewise.
 */
static inline void mma_s8(uint8_t *file, const uint32_t *at, u32 depth)
{
    s8 a[ROWS][32], b[COLUMNS][32];
    u32 n_halves = depth / 16, c_at = 4 + 3 * n_halves;
    for (u32 lane = 0; lane < PTX_LANES; lane++) {
        for (u32 h = 0; h < n_halves; h++) {
            u32 k = 16 * h + 4 * (lane % 4);
            bytes(&a[lane / 4][k], PTX_REG(u32, 4 + 2 * h)[lane]);
            bytes(&a[lane / 4 + 8][k], PTX_REG(u32, 5 + 2 * h)[lane]);
            bytes(&b[lane / 4][k], PTX_REG(u32, 4 + 2 * n_halves + h)[lane]);
        }
    }
    u32 d[4][PTX_LANES]; /* all of c is read before d is written */
    for (u32 i = 0; i < 4; i++) {
        for (u32 lane = 0; lane < PTX_LANES; lane++) {
            const s8 *row = a[lane / 4 + i / 2 * 8], *column = b[lane % 4 * 2 + i % 2];
            s32 sum = 0;
            for (u32 k = 0; k < depth; k++)
                sum += row[k] * column[k];
            d[i][lane] = PTX_REG(u32, c_at + i)[lane] + (u32)sum;
        }
    }
    for (u32 i = 0; i < 4; i++)
        memcpy(PTX_REG(u32, i), d[i], sizeof d[i]);
}

static void mma_s8_16(uint8_t *file, const uint32_t *at, uint32_t mask)
{
    (void)mask;
    mma_s8(file, at, 16);
}

static void mma_s8_32(uint8_t *file, const uint32_t *at, uint32_t mask)
{
    (void)mask;
    mma_s8(file, at, 32);
}

static const struct ptx_form rows[] = {
    {"shfl.sync.bfly.b32", "wp>wwww", shfl_bfly, PTX_COLLECTIVE},
    {"shfl.sync.down.b32", "wp>wwww", shfl_down, PTX_COLLECTIVE},
    {"shfl.sync.idx.b32", "wp>wwww", shfl_idx, PTX_COLLECTIVE},
    {"vote.sync.ballot.b32", "w>pw", vote_ballot, PTX_COLLECTIVE},
    {"vote.sync.any.pred", "p>pw", vote_any, PTX_COLLECTIVE},
    {"vote.sync.all.pred", "p>pw", vote_all, PTX_COLLECTIVE},
    {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "wwww>wwwwwwwwww", mma_bf16,
     PTX_COLLECTIVE},
    {"mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32", "wwww>wwwwwww", mma_s8_16, PTX_COLLECTIVE},
    {"mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", "wwww>wwwwwwwwww", mma_s8_32,
     PTX_COLLECTIVE},
};

PTX_FORMS(PTX_NAME(ptx_collectives), rows);
