#include "tests/harness/random_blocks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "kernels/quant/rows.h"

enum { MAX_BLOCK = 256 };

/** Whether the values of a block are finite, of about the wanted size, and of both signs. */
static bool fits(const float *y, size_t n, double rms)
{
    double sum = 0;
    double squares = 0;
    for (size_t i = 0; i < n; i++) {
        sum += (double)y[i];
        squares += (double)y[i] * (double)y[i];
    }
    double found = sqrt(squares / (double)n);
    bool balanced = n <= 2 || fabs(sum) / (double)n < found / 2;
    return found > rms / 2 && found < rms * 2 && balanced; /* false for NaN */
}

/** A bundle of one block of columns: its prefixes, and the block. */
struct bundle {
    const struct kern_quant *format;
    const struct gguf_type_info *type;
    size_t n_prefix, n_bytes;
    uint8_t *bytes;
    uint8_t *owner; /* of each byte the row that it is part of */
    struct gguf_scales scales;
};

struct gguf_scales random_blocks_scales(enum gguf_type type, double rms)
{
    static float scales[GGUF_TYPE_LIMIT];
    static uint8_t codes[GGUF_TYPE_LIMIT];
    /* of random codes, about */
    double natural = type == GGUF_TYPE_F8_E4M3                ? 100
                     : type == GGUF_TYPE_F8_E5M2              ? 9000
                     : type == GGUF_TYPE_I2_S                 ? 1.2
                     : gguf_type_info(type)->packed_bits == 8 ? 74
                                                              : 3;
    struct gguf_scales out = {&codes[type], GGUF_SCALE_F32, GGUF_SCALES_ALL, GGUF_SCALES_ALL, 1, 0};
    if (gguf_type_info(type)->scale_elems == 0)
        return (struct gguf_scales){0};
    scales[type] = (float)(rms / natural);
    int power = (int)lround(log2(rms / natural));
    if (type == GGUF_TYPE_MXFP4_APART) {
        codes[type] = (uint8_t)(127 + power);
        out.type = GGUF_SCALE_E8M0;
    } else if (type == GGUF_TYPE_NVFP4_APART) {
        codes[type] = (uint8_t)(power < -6 ? 1 << (power + 9) : (power + 7) << 3);
        out.type = GGUF_SCALE_E4M3;
    } else {
        out.data = &scales[type];
    }
    return out;
}

static const void *row_of(const struct bundle *b, size_t row, void *work)
{
    const struct kern_rows rows = {b->type->type, b->bytes, 0, NULL, b->scales};
    return kern_rows_blocks(&rows, row, 0, b->type->block_elems, work);
}

/** Find the owners: flip each byte, and see which row is another one then. */
static void find_owners(struct bundle *b)
{
    uint8_t before[KERN_ROWS_WORK_BYTES * MAX_BLOCK], after[KERN_ROWS_WORK_BYTES * MAX_BLOCK];
    size_t n = kern_quant_bytes(b->format, b->type->block_elems);
    memset(b->owner, 0, b->n_bytes);
    for (size_t i = 0; b->type->bundle_rows > 1 && i < b->n_bytes; i++)
        for (uint8_t row = 0; row < b->type->bundle_rows; row++) {
            memcpy(before, row_of(b, row, before), n);
            b->bytes[i] ^= 0xff;
            if (memcmp(before, row_of(b, row, after), n) != 0)
                b->owner[i] = row;
            b->bytes[i] ^= 0xff;
        }
}

/** Draw the bytes of a row until its values fit; the first n_kept bytes stay as they are. */
static void draw_row(struct bundle *b, struct rng *r, size_t row, size_t n_kept, double rms)
{
    uint8_t work[KERN_ROWS_WORK_BYTES * MAX_BLOCK];
    float y[MAX_BLOCK];
    const uint8_t *block;
    size_t n = b->type->block_elems;
    do {
        uint8_t bytes[16];
        for (size_t i = n_kept; i < b->n_bytes; i++) {
            if (i % sizeof bytes == 0 || i == n_kept)
                rng_bytes(r, bytes, sizeof bytes);
            if (b->owner[i] == row)
                b->bytes[i] = bytes[i % sizeof bytes];
        }
        block = row_of(b, row, work);
        b->format->decode(block, y, n);
    } while (!fits(y, n, rms) ||
             (b->format->find_invalid && b->format->find_invalid(block, 1) == 0));
}

bool random_blocks_open(struct random_blocks *pool, enum gguf_type type, double rms, size_t n_elems)
{
    const struct gguf_type_info *info = gguf_type_info(type);
    size_t rows = info->bundle_rows, run_blocks = MAX_BLOCK / info->block_elems;
    pool->type = info;
    pool->rng = rng_open(0, (uint64_t)type);
    pool->n_blocks = base_max(n_elems / info->block_elems / rows, 4 * run_blocks);
    pool->block_bytes = rows * info->block_bytes;
    struct bundle b = {.format = kern_quant_find(type),
                       .type = info,
                       .n_prefix = rows * info->row_prefix,
                       .n_bytes = rows * (info->row_prefix + info->block_bytes),
                       .scales = random_blocks_scales(type, rms)};
    b.bytes = calloc(b.n_bytes, 1);
    b.owner = malloc(b.n_bytes);
    pool->prefix = malloc(b.n_prefix + 1);
    pool->blocks = malloc(pool->n_blocks * pool->block_bytes);
    if (b.scales.data)
        memcpy(pool->scale, b.scales.data, gguf_scale_bytes(b.scales.type));
    bool enough = b.bytes && b.owner && pool->prefix && pool->blocks;
    if (enough)
        find_owners(&b);
    for (size_t i = 0; enough && i < pool->n_blocks; i++) {
        for (size_t row = 0; row < rows; row++)
            draw_row(&b, &pool->rng, row, i > 0 ? b.n_prefix : 0, rms);
        memcpy(pool->prefix, b.bytes, b.n_prefix);
        memcpy(pool->blocks + i * pool->block_bytes, b.bytes + b.n_prefix, pool->block_bytes);
    }
    free(b.bytes);
    free(b.owner);
    return enough;
}

void random_blocks_close(struct random_blocks *pool)
{
    free(pool->prefix);
    free(pool->blocks);
    pool->prefix = pool->blocks = NULL;
}

size_t random_blocks_row_bytes(enum gguf_type type, size_t n_cols)
{
    uint64_t n = 0;
    return gguf_row_bytes(gguf_type_info(type), n_cols, &n) ? (size_t)n : 0;
}

void random_blocks_draw(struct random_blocks *pool, void *bytes, size_t n_rows, size_t n_cols)
{
    size_t bundle = pool->type->bundle_rows, n_prefix = bundle * pool->type->row_prefix;
    /* Runs of neighbours, so that small blocks do not need a random number each. */
    size_t run_blocks = MAX_BLOCK / pool->type->block_elems;
    uint8_t *to = bytes;
    for (size_t row = 0; row < n_rows; row += bundle) {
        memcpy(to, pool->prefix, n_prefix);
        to += n_prefix;
        for (size_t left = n_cols / pool->type->block_elems; left > 0;) {
            size_t n = base_min(left, run_blocks);
            size_t from = rng_below(&pool->rng, pool->n_blocks - run_blocks + 1);
            memcpy(to, pool->blocks + from * pool->block_bytes, n * pool->block_bytes);
            to += n * pool->block_bytes;
            left -= n;
        }
    }
}
