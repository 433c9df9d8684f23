/** What the tests of activations and products in integers share: their kinds and variants. */
#ifndef TESTS_KERNELS_ROUNDED_KINDS_H
#define TESTS_KERNELS_ROUNDED_KINDS_H

#include <math.h>
#include <string.h>

#include "kernels/cpu/kernels.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/guard.h"
#include "tests/harness/rng.h"

enum {
    COLUMNS = KERN_ROUNDED_COLUMNS,
    MAX_BLOCK = KERN_INT16_BLOCK,
    TOKENS = KERN_ROUNDED_TOKENS,
    MAX_ROWS = 30
};

/** What activations are rounded to, and the kernels for it. */
static const struct kind {
    const char *name;
    bool bytes; /* else they lie as words of 16 bits */
    size_t block;
    int largest;
    size_t chunk_bytes;
} kinds[] = {
    {"int16", false, KERN_INT16_BLOCK, KERN_INT16_MAX, sizeof(struct kern_int16_chunk)},
    {"int8", true, KERN_INT8_BLOCK, KERN_INT8_MAX, sizeof(struct kern_int8_chunk)},
    {"words", false, KERN_INT8_BLOCK, KERN_INT8_MAX, sizeof(struct kern_int16_chunk)},
};
static const struct kind *kind;

/** The kernels under test: an ISA's, and the tiles that VNNI changes. */
struct variant {
    const char *name;
    enum kern_isa isa;
    bool vnni;
    const struct kern_kernels *tiles;
    size_t word; /* columns of a token side by side, in planes of bytes; 0: as rounded.h has it */
};

static const struct variant variants[] = {
    {"scalar", KERN_ISA_SCALAR, false, &kern_kernels_scalar},
#if defined __x86_64__
    {"avx2", KERN_ISA_AVX2, false, &kern_kernels_avx2},
    {"avx2 vnni", KERN_ISA_AVX2, true, &kern_kernels_avx2_vnni},
    {"avx512", KERN_ISA_AVX512, false, &kern_kernels_avx512},
    {"avx512 vnni", KERN_ISA_AVX512, true, &kern_kernels_avx512_vnni},
    {"avx512 pairs", KERN_ISA_AVX512, true, &kern_kernels_avx512_pairs},
#elif defined __aarch64__
    {"neon", KERN_ISA_NEON, false, &kern_kernels_neon, 4},
    {"dotprod", KERN_ISA_DOTPROD, false, &kern_kernels_dotprod, 4},
    {"i8mm", KERN_ISA_I8MM, false, &kern_kernels_i8mm, 8},
#endif
};

static struct kern_kernels kernels;
static const struct variant *variant;

static inline void *data(const struct guard *g)
{
    return g->data;
}

static inline bool has_words(void)
{
    return !kind->bytes && kind->block == KERN_INT8_BLOCK;
}

static inline kern_fma_tile_fn *tile_of(const struct kern_kernels *k)
{
    return kind->bytes ? k->int8_tile : has_words() ? k->words_tile : k->int16_tile;
}

/** Whether the variant's tile is for weights of such integers. */
static inline bool takes(const struct kern_integers *format)
{
    return !kind->bytes || format->largest <= variant->tiles->bytes_most;
}

/** What tokens are rounded to for a format. */
static inline int largest_of(const struct kern_integers *format)
{
    if (kind->bytes)
        return kind->largest - kern_rooms[format->room];
    return !has_words() && format->is_long ? KERN_INT16_LONG_MAX : kind->largest;
}

static inline void pack(const struct kern_kernels *k, struct kern_panel_pack op, int largest)
{
    op.largest = largest;
    (kind->bytes ? k->int8_pack : has_words() ? k->words_pack : k->int16_pack)(&op);
}

static inline void multiply(const struct kern_kernels *k, const struct kern_fma_tile *op)
{
    tile_of(k)(op);
}

/** How the kind has a type's integers. */
static inline const struct kern_integers *format_of(enum gguf_type type)
{
    return kern_integers_find(type, kind->block == KERN_INT8_BLOCK ? 8 : 16);
}

static inline size_t n_mins_of(const struct kern_integers *format, size_t n_k)
{
    return format->min_run > 0 ? n_k / format->min_run : 0;
}

/** Floats of a row's integers, and what comes with them. */
static inline size_t integer_floats(size_t n_k, size_t run)
{
    return kind->bytes ? kern_int8_floats(n_k, run) : kern_int16_floats(n_k, run);
}

static inline const void *chunk_at(const void *chunks, size_t i)
{
    return (const char *)chunks + i * kind->chunk_bytes;
}

static inline const struct kern_rounded_factors *factors_at(const void *chunks, size_t i)
{
    const void *chunk = chunk_at(chunks, i);
    return kind->bytes ? &((const struct kern_int8_chunk *)chunk)->of
                       : &((const struct kern_int16_chunk *)chunk)->of;
}

/** The integer of column i of a token; chunks: those of a row. */
static inline int integer_at(const void *chunks, size_t lane, size_t i)
{
    const struct kern_int16_chunk *words = chunk_at(chunks, i / COLUMNS);
    const struct kern_int8_chunk *bytes = chunk_at(chunks, i / COLUMNS);
    i %= COLUMNS;
    return kind->bytes ? bytes->x[lane / 16][i / 4][lane % 16][i % 4] - KERN_INT8_OFFSET
                       : words->x[lane / 16][i / 2][lane % 16][i % 2];
}

/** The same of chunks that the variant's own kernel has packed. */
static inline int own_integer_at(const void *chunks, size_t lane, size_t i)
{
    enum { PLANE = COLUMNS * 8 }; /* of eight tokens */
    size_t word = variant->word, n_planes = kind->bytes ? 1 : 2;
    if (!word)
        return integer_at(chunks, lane, i);
    const int8_t *bytes = chunk_at(chunks, i / COLUMNS);
    i %= COLUMNS;
    bytes += lane / 8 * n_planes * PLANE + i / 16 * PLANE / 2;
    bytes += i % 16 / word * 8 * word + lane % 8 * word + i % word;
    return kind->bytes ? *bytes : 256 * *bytes + bytes[PLANE];
}

/** A weight's integer of column i of a row. */
static inline int weight_at(const float *row, size_t i)
{
    return kind->bytes ? ((const int8_t *)(const void *)row)[i]
                       : ((const int16_t *)(const void *)row)[i];
}

static inline void guards_close(struct guard *guards, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        assert_true(guard_intact(&guards[i]));
        guard_close(&guards[i]);
    }
}

static inline float rare_number(struct rng *r)
{
    static const float numbers[] = {NAN,       -NAN,       INFINITY, -INFINITY,
                                    0x1p-149f, -0x1p-130f, 0,        -0.0f};
    return numbers[rng_below(r, sizeof numbers / sizeof numbers[0])];
}

static inline bool is_here(const struct variant *v)
{
    return v->isa <= kern_isa_detect() && (!v->vnni || kern_isa_has_vnni(v->isa));
}

/** Run the tests of the definition once, and the others for every variant, of both kinds. */
#define RUN_KINDS(definition, tests)                                                               \
    int n_failed = 0;                                                                              \
    for (kind = kinds; kind < kinds + sizeof kinds / sizeof kinds[0]; kind++) {                    \
        variant = &variants[0];                                                                    \
        n_failed += cmocka_run_group_tests_name(kind->name, definition, NULL, NULL);               \
        for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {                        \
            variant = &variants[i];                                                                \
            if (!tile_of(variant->tiles))                                                          \
                continue; /* the set below has it */                                               \
            if (!is_here(variant)) {                                                               \
                print_message("%s: not on this processor\n", variant->name);                       \
                continue;                                                                          \
            }                                                                                      \
            kern_kernels_build(&kernels, variant->isa);                                            \
            n_failed += cmocka_run_group_tests_name(variant->name, tests, NULL, NULL);             \
        }                                                                                          \
    }                                                                                              \
    return n_failed

#endif
