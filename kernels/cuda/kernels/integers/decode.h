/**
 * Packed weights to records of integers (records.h): a part of the decoding kernel (../decode.h).
 *
 * A thread takes a block of the format in shared memory, writes its scales to records, and makes
 * it neutral (kernels/quant/integers.h). Then every thread decodes 32 elements with the format's
 * own function, which gives integers. 1.1 to 1.5 bytes are written for each.
 */
#ifndef KERNELS_CUDA_KERNELS_INTEGERS_DECODE_H
#define KERNELS_CUDA_KERNELS_INTEGERS_DECODE_H

#include "kernels/cuda/kernels/integers/records.h"

enum { KERN_MOST_RUNS = KERN_WIDE_ELEMS / 16 /* of a block */ };

/** What a block says of its runs. */
struct kern_integer_factors {
    float scale;                  /* of a wide type */
    float scales[KERN_MOST_RUNS]; /* of a wide type sub-scales, which are whole numbers */
    float mins[KERN_MOST_RUNS];
};

/* Arguments as above, for types without minima. */
#define KERN_SCALES_SCALED(TYPE, name, ...)                                                        \
    KERN_INLINE void kern_##name##_factors(const struct kern_block_##name *block, float *scales,   \
                                           float *mins)                                            \
    {                                                                                              \
        (void)mins;                                                                                \
        kern_##name##_scales(block, scales);                                                       \
    }
#define KERN_SCALES_WITH_MIN(TYPE, name, ...)                                                      \
    KERN_INLINE void kern_##name##_factors(const struct kern_block_##name *block, float *scales,   \
                                           float *mins)                                            \
    {                                                                                              \
        kern_##name##_scales(block, scales, mins);                                                 \
    }
KERN_INTEGER_FORMATS(KERN_SCALES_SCALED, KERN_SCALES_WITH_MIN)
#undef KERN_SCALES_SCALED
#undef KERN_SCALES_WITH_MIN

#define KERN_TAKE(TYPE, name, ...)                                                                 \
    case GGUF_TYPE_##TYPE: {                                                                       \
        struct kern_block_##name *block = (struct kern_block_##name *)blocks + i;                  \
        kern_##name##_factors(block, f->scales, f->mins);                                          \
        kern_##name##_neutralise(block);                                                           \
        return;                                                                                    \
    }
/* A block whose own scale is neutral has sub-scales for scales. */
#define KERN_TAKE_WIDE(TYPE, name, ...)                                                            \
    case GGUF_TYPE_##TYPE: {                                                                       \
        struct kern_block_##name *block = (struct kern_block_##name *)blocks + i;                  \
        float unused[KERN_MOST_RUNS];                                                              \
        f->scale = kern_##name##_block_scale(block);                                               \
        kern_##name##_factors(block, unused, f->mins);                                             \
        kern_##name##_neutralise_block(block);                                                     \
        kern_##name##_factors(block, f->scales, unused);                                           \
        kern_##name##_neutralise(block);                                                           \
        return;                                                                                    \
    }

/** The factors of block i, which becomes neutral. */
KERN_INLINE void kern_integer_take(enum gguf_type type, void *blocks, unsigned i,
                                   struct kern_integer_factors *f)
{
    switch (type) {
        KERN_WIDE_FORMATS(KERN_TAKE_WIDE)
    default:
        break;
    }
    switch (type) {
        KERN_INTEGER_FORMATS(KERN_TAKE, KERN_TAKE)
    default:
        return;
    }
}
#undef KERN_TAKE
#undef KERN_TAKE_WIDE

/** A word of a row in group `group` of the record of its column. */
KERN_INLINE void kern_integer_put(const struct kern_records *to, unsigned n_words, size_t row,
                                  uint32_t column, unsigned group, uint32_t word)
{
    size_t record = row / KERN_RECORD_ROWS * to->n_blocks + column / KERN_RECORD_COLUMNS;
    unsigned at = (unsigned)(row % 8 * 2 + row / 8 % 2);
    to->words[record * n_words + KERN_RECORD_INTEGERS + group * KERN_RECORD_GROUP + at] = word;
}

/** Block i of the chunk, which begins at this row and column: its factors to the records. */
KERN_INLINE void kern_integer_neutral(enum gguf_type type, const struct kern_records *to,
                                      void *blocks, unsigned i, size_t row, uint32_t column)
{
    const struct kern_integer_form form = kern_integer_form_of(type);
    const unsigned n_words = kern_record_words(form), per_record = KERN_RECORD_RUNS(form.run);
    struct kern_integer_factors f;
    kern_integer_take(type, blocks, i, &f);
    KERN_UNROLL
    for (unsigned n = 0; n < KERN_MOST_RUNS; n++) {
        if (n >= form.elems / form.run)
            continue;
        uint32_t at = column + n * form.run;
        unsigned which = at % KERN_RECORD_COLUMNS / form.run;
        uint32_t scale = form.wide ? (uint32_t)(int32_t)f.scales[n] : kern_bits_of(f.scales[n]);
        kern_integer_put(to, n_words, row, at, which + (form.wide ? 1 : 0), scale);
        if (form.wide && which == 0)
            kern_integer_put(to, n_words, row, at, 0, kern_bits_of(f.scale));
        if (form.min)
            kern_integer_put(to, n_words, row, at, per_record + which + (form.wide ? 1 : 0),
                             kern_bits_of(f.mins[n]));
    }
}

/** 32 integers of a row from `column` on, which is a multiple of 32. */
KERN_INLINE void kern_integer_store(enum gguf_type type, const struct kern_records *to, size_t row,
                                    uint32_t column, const float *y)
{
    size_t record = row / KERN_RECORD_ROWS * to->n_blocks + column / KERN_RECORD_COLUMNS;
    uint32_t *words = to->words + record * kern_record_words(kern_integer_form_of(type)) +
                      kern_record_place((unsigned)(row % 8), column) + row / 8 % 2 * 2;
    KERN_UNROLL
    for (unsigned q = 0; q < 4; q++) {
        struct kern_bytes8 both;
        KERN_UNROLL
        for (unsigned half = 0; half < 2; half++) {
            const float *four = y + 16 * half + 4 * q;
            both.v[half] = kern_record_word((int)four[0], (int)four[1], (int)four[2], (int)four[3]);
        }
        *(struct kern_bytes8 *)(void *)(words + 4 * q) = both;
    }
}

#endif
