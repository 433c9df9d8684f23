/**
 * How the operands of products in 16-bit integers lie in memory. The products are defined in
 * docs/forward.md, the integers of a type in kernels/quant/integers.h.
 *
 * An activation x of -31743..31743 (-28671..28671 for long types) is 256 high + low, with high in
 * -124..124 and low in -128..127. So sum(w x) = 256 sum(w high) + sum(w low), modulo 2^32 whatever
 * the order: two products of bytes. A weight's integer is a byte, too. Where docs/forward.md has it
 * multiplied by its sub-scale, which takes more than 8 bits, the sub-scale stays apart ("wide"
 * types): the sum over 64 columns is that of sub-scale times sum over a run of 16 or 32 columns,
 * the same integer. It may be beyond 32 bits where a sub-scale times an integer may be beyond 1023
 * ("long" types).
 *
 * A record has 64 columns of 16 rows of weights or of 8 tokens, as 32-bit words. A matrix is
 * records: those of the first 16 rows (8 tokens) in the order of the columns, then of the next.
 * Columns after the last one are zeros, and so are rows and tokens.
 *
 *     weights   256 words of integers, then groups of 16 words, one for each row: scales as floats
 *               (one of a wide type, else one of each run); sub-scales as integers (a wide type's,
 *               of each run); minima as floats (of each run)
 *     tokens    256 words of integers; 8 scales as floats; 4 x 8 sums of 16 columns as floats
 *
 * Integers lie as the instruction wants them (mma.h): words 4 l .. 4 l + 3 of the first 128 belong
 * to lane l and columns 0..31, those of the other 128 to columns 32..63. With g = l / 4 and
 * q = l % 4 each word has four neighbours, from column 4 q or 16 + 4 q on:
 *
 *     word      0                 1                      2                 3
 *     weights   row g, 4 q        row g, 16 + 4 q        row g + 8, 4 q    row g + 8, 16 + 4 q
 *     tokens    token g's high    high, 16 + 4 q         low, 4 q          low, 16 + 4 q
 *
 * In a group of 16 words row r has word 2 (r % 8) + r / 8, so that a lane's two lie together.
 */
#ifndef KERNELS_CUDA_KERNELS_INTEGERS_RECORDS_H
#define KERNELS_CUDA_KERNELS_INTEGERS_RECORDS_H

#include <stdbool.h>

#include "gguf/type.h"
#include "kernels/cuda/kernels/thread.h"
#include "kernels/quant/integer_list.h"

enum {
    KERN_RECORD_COLUMNS = 64,
    KERN_RECORD_ROWS = 16,
    KERN_RECORD_TOKENS = 8,
    KERN_RECORD_INTEGERS = 256, /* words */
    KERN_RECORD_GROUP = 16,     /* words of a scale, sub-scale or minimum of each row */
    KERN_RECORD_SUM = 16,       /* columns of a sum */
    KERN_TOKEN_SUMS = KERN_RECORD_INTEGERS + KERN_RECORD_TOKENS, /* where they begin */
    KERN_TOKEN_WORDS = KERN_TOKEN_SUMS + KERN_RECORD_COLUMNS / KERN_RECORD_SUM * KERN_RECORD_TOKENS
};

/** A type's integers. */
struct kern_integer_form {
    unsigned run;   /* columns that share a scale or, of a wide type, a sub-scale: 16 or 32; 0: the
                     * type has no integers */
    unsigned elems; /* of a block of the file's */
    bool wide;      /* runs have sub-scales, and a record's columns share a scale */
    bool is_long;   /* and sums may be beyond 32 bits */
    bool min;       /* runs have minima */
};

/** The form of a type whose blocks a device decodes: a constant where the type is one. */
KERN_INLINE struct kern_integer_form kern_integer_form_of(enum gguf_type type)
{
    struct kern_integer_form form = {0, 0, false, false, false};
#define KERN_FORM(TYPE, n_elems, n_run, has_min)                                                   \
    case GGUF_TYPE_##TYPE:                                                                         \
        form.run = n_run;                                                                          \
        form.elems = n_elems;                                                                      \
        form.min = has_min;                                                                        \
        break;
#define KERN_FORM_SCALED(TYPE, name, id, n_elems, bytes, prefix, rows, n_run, most)                \
    KERN_FORM(TYPE, n_elems, n_run, false)
#define KERN_FORM_WITH_MIN(TYPE, name, id, n_elems, bytes, prefix, rows, n_run, most)              \
    KERN_FORM(TYPE, n_elems, n_run, true)
#define KERN_FORM_WIDE(TYPE, name, runs, min_elems, most)                                          \
    form.wide |= type == GGUF_TYPE_##TYPE;                                                         \
    form.is_long |= type == GGUF_TYPE_##TYPE && (most) > KERN_INTEGER_WIDE;
    switch (type) {
        KERN_INTEGER_FORMATS(KERN_FORM_SCALED, KERN_FORM_WITH_MIN)
    default:
        break;
    }
    KERN_WIDE_FORMATS(KERN_FORM_WIDE)
#undef KERN_FORM
#undef KERN_FORM_SCALED
#undef KERN_FORM_WITH_MIN
#undef KERN_FORM_WIDE
    return form;
}

/* Groups of a record: macros, because kernels/list.h needs a constant. */
#define KERN_RECORD_RUNS(run)         (KERN_RECORD_COLUMNS / (run))
#define KERN_RECORD_SCALES(run, wide) ((wide) ? 1 : KERN_RECORD_RUNS(run))
#define KERN_RECORD_WORDS(run, wide, min)                                                          \
    (KERN_RECORD_INTEGERS +                                                                        \
     KERN_RECORD_GROUP * (KERN_RECORD_SCALES(run, wide) +                                          \
                          KERN_RECORD_RUNS(run) * (((wide) ? 1 : 0) + ((min) ? 1 : 0))))

KERN_INLINE unsigned kern_record_words(struct kern_integer_form f)
{
    return KERN_RECORD_WORDS(f.run, f.wide, f.min);
}

/** Rows of a matrix as records. */
struct kern_records {
    uint32_t *words;
    size_t n_blocks; /* records of a row */
};

/** Records of rows of n_cols columns. */
KERN_INLINE size_t kern_record_blocks(size_t n_cols)
{
    return (n_cols + KERN_RECORD_COLUMNS - 1) / KERN_RECORD_COLUMNS;
}

/** Where words 0 and 1 of 16 columns from `column` on of row g of 8 begin; the next are 4 apart. */
KERN_INLINE unsigned kern_record_place(unsigned g, unsigned column)
{
    unsigned half = column / 32 % 2, which = column / 16 % 2;
    return half * (KERN_RECORD_INTEGERS / 2) + g * 16 + which;
}

/** Four integers of 8 bits as a word. */
KERN_INLINE uint32_t kern_record_word(int a, int b, int c, int d)
{
    return (uint32_t)(a & 255) | (uint32_t)(b & 255) << 8 | (uint32_t)(c & 255) << 16 |
           (uint32_t)d << 24;
}

#endif
