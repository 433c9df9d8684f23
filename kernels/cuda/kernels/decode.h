/**
 * Decode packed weights to floats or scaled halves.
 *
 * A block of threads takes KERN_DECODE_ELEMS elements. Their bytes come to shared memory in 16-byte
 * loads. Each thread decodes 32 of them with the format's own function, and they leave in coalesced
 * stores. Per element it must move the format's bytes (0.56 for Q4_K) and write 4, 2 or 6 bytes
 * (float, half, two halves of which one is there twice), or those of a record of integers
 * (integers/records.h). TO_MAX writes next to nothing. Arithmetic is a few operations per element,
 * and is the limit for the codebooks of IQ2 and IQ3 only.
 */
#ifndef KERNELS_CUDA_KERNELS_DECODE_H
#define KERNELS_CUDA_KERNELS_DECODE_H

#include "gguf/type.h"
#include "gguf/type_list.h"
#include "kernels/cuda/kernels/half.h"
#include "kernels/cuda/kernels/integers/decode.h"
#include "kernels/cuda/kernels/thread.h"
#include "kernels/quant/formats.h"
#include "kernels/quant/ik/formats.h"

/*
 * The block formats that a device decodes: of the table of types (gguf/type_list.h) all whose rows
 * are not taken out of bundles as blocks of another one. ROW takes the table's columns.
 */

/** Formats of single elements: kern_<name>_row() decodes. */
#define KERN_DECODE_FLOATS(ROW)                                                                    \
    GGUF_TYPES(ROW, GGUF_NO_TYPE, GGUF_NO_TYPE, GGUF_NO_TYPE, GGUF_NO_TYPE, GGUF_NO_TYPE,          \
               GGUF_NO_TYPE)

/** Formats of blocks, as kern_rows_blocks() gives them: kern_<name>_group() decodes 32 elements. */
#define KERN_DECODE_BLOCKS(ROW)                                                                    \
    GGUF_TYPES(GGUF_NO_TYPE, ROW, ROW, ROW, GGUF_NO_TYPE, ROW, GGUF_NO_TYPE)

enum {
    KERN_DECODE_THREADS = 128,
    KERN_DECODE_GROUP = 32, /* elements of a thread */
    KERN_DECODE_ELEMS = KERN_DECODE_THREADS * KERN_DECODE_GROUP,
    KERN_DECODE_PITCH = KERN_DECODE_GROUP + 1 /* keeps threads out of one another's banks */
};

/** What becomes of a decoded element. */
enum kern_decode_form {
    KERN_DECODE_TO_FLOAT,
    KERN_DECODE_TO_MAX,     /* only raise the row's largest magnitude */
    KERN_DECODE_TO_HALVES,  /* scaled, in one part or two */
    KERN_DECODE_TO_INTEGERS /* as records; of types that have them */
};

/** Rows of n_cols elements, packed without gaps from `blocks` (aligned to 16) on. */
struct kern_decode_args {
    const uint8_t *blocks;
    size_t n_elems; /* rows * n_cols */
    size_t n_cols;
    uint32_t block_elems, block_bytes;
    enum kern_decode_form form;
    float *y;                     /* TO_FLOAT: [n_elems] */
    struct kern_half_rows halves; /* TO_HALVES */
    struct kern_records integers; /* TO_INTEGERS */
    uint32_t *largest;            /* [rows]: bits; TO_MAX raises them, the halves read them */
};

/** Shared memory: floats first, then the bytes of the chunk. */
KERN_INLINE float *kern_decode_floats(void *shared)
{
    return (float *)shared;
}

KERN_INLINE uint8_t *kern_decode_bytes(void *shared)
{
    return (uint8_t *)(kern_decode_floats(shared) + KERN_DECODE_THREADS * KERN_DECODE_PITCH);
}

#define KERN_DECODE_ELEMENTS(TYPE, name, id, n_elems, n_bytes, ...)                                \
    case GGUF_TYPE_##TYPE:                                                                         \
        kern_##name##_row(bytes + (n_bytes)*first, y, n);                                          \
        return;

#define KERN_DECODE_BLOCK(TYPE, name, id, n_elems, ...)                                            \
    case GGUF_TYPE_##TYPE:                                                                         \
        kern_##name##_group((const struct kern_block_##name *)(const void *)bytes +                \
                                first / (n_elems),                                                 \
                            first % (n_elems) / 32, y);                                            \
        return;

/** Decode n elements, up to 32, from element `first` of the chunk on. Blocks have whole groups. */
KERN_INLINE void kern_decode_group(enum gguf_type type, const uint8_t *bytes, unsigned first,
                                   unsigned n, float *y)
{
    switch (type) {
        KERN_DECODE_FLOATS(KERN_DECODE_ELEMENTS)
        KERN_DECODE_BLOCKS(KERN_DECODE_BLOCK)
    default: /* one with bundles, whose rows are another's blocks */
        return;
    }
}

/** Whether a row of a type may end anywhere; of the others it ends with a group. */
KERN_INLINE bool kern_decode_is_single(enum gguf_type type)
{
#define KERN_DECODE_SINGLE(TYPE, ...) type == GGUF_TYPE_##TYPE ||
    return KERN_DECODE_FLOATS(KERN_DECODE_SINGLE) false;
#undef KERN_DECODE_SINGLE
}

/** How many of `left` elements come next: `most`, a constant where rows end with a group. */
KERN_INLINE unsigned kern_decode_next(enum gguf_type type, unsigned left, unsigned most)
{
    return kern_decode_is_single(type) && left < most ? left : most;
}

KERN_INLINE void kern_decode_load(const struct kern_decode_args *a, size_t first, unsigned n,
                                  uint8_t *bytes)
{
    const uint8_t *from = a->blocks + first / a->block_elems * a->block_bytes;
    unsigned n_bytes = n / a->block_elems * a->block_bytes, n_vecs = n_bytes / 16;
    for (unsigned t = kern_thread_begin(); t < KERN_DECODE_THREADS;
         t += kern_thread_step(KERN_DECODE_THREADS)) {
        for (unsigned i = t; i < n_vecs; i += KERN_DECODE_THREADS)
            ((struct kern_bytes16 *)(void *)bytes)[i] =
                ((const struct kern_bytes16 *)(const void *)from)[i];
        for (unsigned i = 16 * n_vecs + t; i < n_bytes; i += KERN_DECODE_THREADS)
            bytes[i] = from[i];
    }
}

/** Raise the largest magnitudes of the rows that a thread's elements belong to. */
KERN_INLINE void kern_decode_raise(enum gguf_type type, const struct kern_decode_args *a,
                                   size_t element, unsigned n, const float *y)
{
    size_t row = element / a->n_cols, col = element % a->n_cols;
    uint32_t most = 0;
    for (unsigned i = 0; i < n; i++) {
        uint32_t bits = kern_magnitude_bits(y[i]);
        most = bits > most ? bits : most;
        if ((kern_decode_is_single(type) && ++col == a->n_cols) || i + 1 == n) {
            kern_atomic_max(&a->largest[row++], most);
            most = 0;
            col = 0;
        }
    }
}

/** Where a chunk begins in the matrix. Its columns stay below 2^31 + KERN_DECODE_ELEMS. */
struct kern_decode_start {
    size_t element, row;
    uint32_t col, n_cols;
};

KERN_INLINE void kern_decode_store_floats(float *to, unsigned n, const float *y)
{
    if (n == 4) {
        struct kern_vec4 out = {{y[0], y[1], y[2], y[3]}};
        *(struct kern_vec4 *)(void *)to = out;
        return;
    }
    for (unsigned i = 0; i < n; i++)
        to[i] = y[i];
}

/** Store elements i .. i + n - 1 (n up to 4) of the chunk. */
KERN_INLINE void kern_decode_store(enum gguf_type type, const struct kern_decode_args *a,
                                   const struct kern_decode_start *start, unsigned i, unsigned n,
                                   const float *y)
{
    if (a->form == KERN_DECODE_TO_FLOAT) {
        kern_decode_store_floats(a->y + start->element + i, n, y);
        return;
    }
    uint32_t row = (start->col + i) / start->n_cols, col = (start->col + i) % start->n_cols;
    bool whole = !kern_decode_is_single(type);
    for (unsigned k = 0; k < n; col = 0, row++) {
        unsigned left = start->n_cols - col, n_own = whole || n - k < left ? n - k : left;
        size_t at = (start->row + row) * a->halves.stride + col;
        int exponent = kern_row_exponent(a->largest[start->row + row]);
        kern_half_rows_store(&a->halves, at, n_own, whole, exponent, y + k);
        k += n_own;
    }
}

/** The chunk's n elements as integers. */
KERN_INLINE void kern_decode_integers(enum gguf_type type, const struct kern_decode_args *a,
                                      const struct kern_decode_start *start, unsigned n,
                                      uint8_t *bytes)
{
    const unsigned n_elems = kern_integer_form_of(type).elems;
    for (unsigned t = kern_thread_begin(); t < KERN_DECODE_THREADS;
         t += kern_thread_step(KERN_DECODE_THREADS)) {
        uint32_t col = start->col + t * n_elems;
        if (t * n_elems < n)
            kern_integer_neutral(type, &a->integers, bytes, t, start->row + col / start->n_cols,
                                 col % start->n_cols);
    }
    kern_barrier();
    for (unsigned t = kern_thread_begin(); t < KERN_DECODE_THREADS;
         t += kern_thread_step(KERN_DECODE_THREADS)) {
        unsigned from = t * KERN_DECODE_GROUP;
        uint32_t col = start->col + from;
        float y[KERN_DECODE_GROUP];
        if (from >= n)
            continue;
        kern_decode_group(type, bytes, from, KERN_DECODE_GROUP, y);
        kern_integer_store(type, &a->integers, start->row + col / start->n_cols,
                           col % start->n_cols, y);
    }
}

/** Elements KERN_DECODE_ELEMS * block .. of a weight of this type. */
KERN_INLINE void kern_decode_block(enum gguf_type type, const struct kern_decode_args *a,
                                   size_t block, void *shared)
{
    float *floats = kern_decode_floats(shared);
    uint8_t *bytes = kern_decode_bytes(shared);
    size_t first = block * KERN_DECODE_ELEMS, left = a->n_elems - first;
    unsigned n = left < KERN_DECODE_ELEMS ? (unsigned)left : KERN_DECODE_ELEMS;
    kern_decode_load(a, first, n, bytes);
    kern_barrier();
    struct kern_decode_start start = {first, first / a->n_cols, (uint32_t)(first % a->n_cols),
                                      (uint32_t)a->n_cols};
    if (kern_integer_form_of(type).run > 0 && a->form == KERN_DECODE_TO_INTEGERS) {
        kern_decode_integers(type, a, &start, n, bytes);
        return;
    }
    for (unsigned t = kern_thread_begin(); t < KERN_DECODE_THREADS;
         t += kern_thread_step(KERN_DECODE_THREADS)) {
        unsigned from = t * KERN_DECODE_GROUP;
        if (from >= n)
            continue;
        unsigned n_own = kern_decode_next(type, n - from, KERN_DECODE_GROUP);
        float *y = floats + t * KERN_DECODE_PITCH;
        kern_decode_group(type, bytes, from, n_own, y);
        if (a->form == KERN_DECODE_TO_MAX)
            kern_decode_raise(type, a, first + from, n_own, y);
    }
    if (a->form == KERN_DECODE_TO_MAX)
        return;
    kern_barrier();
    for (unsigned t = kern_thread_begin(); t < KERN_DECODE_THREADS;
         t += kern_thread_step(KERN_DECODE_THREADS)) {
        for (unsigned i = 4 * t; i < n; i += 4 * KERN_DECODE_THREADS) {
            const float *y =
                floats + i / KERN_DECODE_GROUP * KERN_DECODE_PITCH + i % KERN_DECODE_GROUP;
            kern_decode_store(type, a, &start, i, kern_decode_next(type, n - i, 4), y);
        }
    }
}

#endif
