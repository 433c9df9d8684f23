#include "kernels/quant/integers.h"

#include <string.h>

#include "kernels/quant/integer_list.h"

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
KERN_INTEGER_FORMATS(SCALED_LOOPS, WITH_MIN_LOOPS)

#define WIDE_LOOPS(TYPE, name, runs, min_elems, most)                                              \
    static void name##_wide_scales(const void *blocks, size_t n_blocks, float *scales,             \
                                   float *mins)                                                    \
    {                                                                                              \
        const struct kern_block_##name *block = blocks;                                            \
        float narrow[KERN_WIDE_ELEMS / 16];                                                        \
        for (size_t i = 0; i < n_blocks; i++, block++) {                                           \
            if ((min_elems) > 0)                                                                   \
                name##_scales(block, 1, narrow, mins + (runs)*i);                                  \
            for (size_t j = 0; j < KERN_WIDE_ELEMS / KERN_WIDE_RUN; j++)                           \
                *scales++ = kern_##name##_block_scale(block);                                      \
        }                                                                                          \
    }                                                                                              \
    static void name##_neutralise_block(void *blocks, size_t n_blocks)                             \
    {                                                                                              \
        struct kern_block_##name *block = blocks;                                                  \
        for (size_t i = 0; i < n_blocks; i++)                                                      \
            kern_##name##_neutralise_block(block + i);                                             \
    }
KERN_WIDE_FORMATS(WIDE_LOOPS)

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
     false,                                                                                        \
     ROOM(most, elems),                                                                            \
     name##_scales,                                                                                \
     name##_neutralise},
#define SCALED_ROW(TYPE, name, id, elems, bytes, prefix, rows, run, most)                          \
    ROW(TYPE, name, elems, run, 0, most)
#define WITH_MIN_ROW(TYPE, name, id, elems, bytes, prefix, rows, run, most)                        \
    ROW(TYPE, name, elems, run, run, most)
#define WIDE_ROW(TYPE, name, runs, min_elems, most)                                                \
    {GGUF_TYPE_##TYPE,                                                                             \
     sizeof(struct kern_block_##name),                                                             \
     KERN_WIDE_ELEMS,                                                                              \
     KERN_WIDE_RUN,                                                                                \
     min_elems,                                                                                    \
     most,                                                                                         \
     (most) > KERN_INTEGER_WIDE,                                                                   \
     0,                                                                                            \
     name##_wide_scales,                                                                           \
     name##_neutralise_block},
static const struct kern_integers formats[] = {KERN_INTEGER_FORMATS(SCALED_ROW, WITH_MIN_ROW)};
static const struct kern_integers wide_formats[] = {KERN_WIDE_FORMATS(WIDE_ROW)};

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
