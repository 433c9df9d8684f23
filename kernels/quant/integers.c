#include "kernels/quant/integers.h"

#include <string.h>

#include "kernels/quant/formats.h"
#include "kernels/quant/ik/formats.h"

/** Those that are integers, of the table of types: SCALED and WITH_MIN take its columns. */
#define FORMATS(SCALED, WITH_MIN)                                                                  \
    GGUF_TYPES(GGUF_NO_TYPE, GGUF_NO_TYPE, SCALED, WITH_MIN, GGUF_NO_TYPE, SCALED)

#define NEUTRALISE(name)                                                                           \
    static void name##_neutralise(void *blocks, size_t n_blocks)                                   \
    {                                                                                              \
        struct kern_block_##name *block = blocks;                                                  \
        for (size_t i = 0; i < n_blocks; i++)                                                      \
            kern_##name##_neutralise(block + i);                                                   \
    }
#define SCALED_LOOPS(TYPE, name, id, elems, bytes, prefix, rows, run, most)                        \
    static void name##_scales(const void *blocks, size_t n_blocks, float *scales, float *mins)     \
    {                                                                                              \
        (void)mins;                                                                                \
        const struct kern_block_##name *block = blocks;                                            \
        for (size_t i = 0; i < n_blocks; i++)                                                      \
            kern_##name##_scales(block + i, scales + (elems) / (run)*i);                           \
    }                                                                                              \
    NEUTRALISE(name)
#define WITH_MIN_LOOPS(TYPE, name, id, elems, bytes, prefix, rows, run, most)                      \
    static void name##_scales(const void *blocks, size_t n_blocks, float *scales, float *mins)     \
    {                                                                                              \
        const struct kern_block_##name *block = blocks;                                            \
        for (size_t i = 0; i < n_blocks; i++)                                                      \
            kern_##name##_scales(block + i, scales + (elems) / (run)*i, mins + (elems) / (run)*i); \
    }                                                                                              \
    NEUTRALISE(name)
FORMATS(SCALED_LOOPS, WITH_MIN_LOOPS)

/** Types whose integers may be multiplied by their sub-scales: WIDE(type, name, runs of a min or of
 * a narrow scale in a block of 256, elements that share a min, largest integer). */
/* clang-format off */
#define WIDE_FORMATS(WIDE)                                                                         \
    WIDE(Q2_K, q2_k, 16, 16, 45) WIDE(Q3_K, q3_k, 16, 0, 128) WIDE(Q4_K, q4_k, 8, 32, 945)         \
    WIDE(IQ1_S, iq1_s, 8, 0, 135) WIDE(IQ1_M, iq1_m, 16, 0, 135) WIDE(IQ3_S, iq3_s, 8, 0, 465)     \
    WIDE(TQ1_0, tq1_0, 8, 0, 1) WIDE(TQ2_0, tq2_0, 8, 0, 2)
/* clang-format on */
enum { WIDE_RUN = 64, WIDE_ELEMS = 256 };

#define WIDE_LOOPS(TYPE, name, runs, min_elems, most)                                              \
    static void name##_wide_scales(const void *blocks, size_t n_blocks, float *scales,             \
                                   float *mins)                                                    \
    {                                                                                              \
        const struct kern_block_##name *block = blocks;                                            \
        float narrow[WIDE_ELEMS / 16];                                                             \
        for (size_t i = 0; i < n_blocks; i++, block++) {                                           \
            if ((min_elems) > 0)                                                                   \
                name##_scales(block, 1, narrow, mins + (runs)*i);                                  \
            for (size_t j = 0; j < WIDE_ELEMS / WIDE_RUN; j++)                                     \
                *scales++ = kern_##name##_block_scale(block);                                      \
        }                                                                                          \
    }                                                                                              \
    static void name##_neutralise_block(void *blocks, size_t n_blocks)                             \
    {                                                                                              \
        struct kern_block_##name *block = blocks;                                                  \
        for (size_t i = 0; i < n_blocks; i++)                                                      \
            kern_##name##_neutralise_block(block + i);                                             \
    }
WIDE_FORMATS(WIDE_LOOPS)

/**
 * Leaving room costs accuracy, (127 / (127 - room))^2 of the squared error: 1.07, 1.31 or 1.79.
 * Only blocks of 256, whose peers round activations in such blocks too, can afford the last. With
 * 16, 4-bit floats (integers of 12 at most) would diverge more than llama.cpp has them.
 */
const int kern_rooms[] = {0, 4, 16, 32};
#define ROOM(most, elems)                                                                          \
    ((most) <= 4 ? 1 : (most) <= 16 && (most) != 12 ? 2 : (most) <= 32 && (elems) == 256 ? 3 : 0)

#define ROW(TYPE, name, elems, run, min_run, most)                                                 \
    {GGUF_TYPE_##TYPE,                                                                             \
     sizeof(struct kern_block_##name),                                                             \
     elems,                                                                                        \
     run,                                                                                          \
     min_run,                                                                                      \
     most,                                                                                         \
     ROOM(most, elems),                                                                            \
     name##_scales,                                                                                \
     name##_neutralise},
#define SCALED_ROW(TYPE, name, id, elems, bytes, prefix, rows, run, most)                          \
    ROW(TYPE, name, elems, run, 0, most)
#define WITH_MIN_ROW(TYPE, name, id, elems, bytes, prefix, rows, run, most)                        \
    ROW(TYPE, name, elems, run, run, most)
#define WIDE_ROW(TYPE, name, runs, min_elems, most)                                                \
    {                                                                                              \
        GGUF_TYPE_##TYPE,                                                                          \
        sizeof(struct kern_block_##name),                                                          \
        WIDE_ELEMS,                                                                                \
        WIDE_RUN,                                                                                  \
        min_elems,                                                                                 \
        most,                                                                                      \
        0,                                                                                         \
        name##_wide_scales,                                                                        \
        name##_neutralise_block},
static const struct kern_integers formats[] = {FORMATS(SCALED_ROW, WITH_MIN_ROW)};
static const struct kern_integers wide_formats[] = {WIDE_FORMATS(WIDE_ROW)};

static const struct kern_integers *find(enum gguf_type type, const struct kern_integers *rows,
                                        size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (rows[i].type == type)
            return &rows[i];
    return NULL;
}

const struct kern_integers *kern_integers_find(enum gguf_type type, unsigned bits)
{
    const struct kern_quant *quant = kern_quant_find(type);
    if (!quant)
        return NULL;
    const struct kern_integers *wide =
        bits == 8 ? NULL
                  : find(quant->plain, wide_formats, sizeof wide_formats / sizeof wide_formats[0]);
    return wide ? wide : find(quant->plain, formats, sizeof formats / sizeof formats[0]);
}

void kern_integers_scales(const struct kern_integers *format, const void *blocks, size_t n,
                          float *scales, float *mins)
{
    format->scales(blocks, n / format->block_elems, scales, mins);
}

void kern_integers_neutral(const struct kern_integers *format, const void *blocks, size_t n,
                           void *copy)
{
    size_t n_blocks = n / format->block_elems;
    memcpy(copy, blocks, n_blocks * format->block_bytes);
    format->neutralise(copy, n_blocks);
}
