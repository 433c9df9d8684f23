#include "tests/harness/random_blocks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/quant/registry.h"

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
    bool balanced = n == 1 || fabs(sum) / (double)n < found / 2;
    return found > rms / 2 && found < rms * 2 && balanced; /* false for NaN */
}

bool random_blocks_open(struct random_blocks *pool, enum gguf_type type, double rms, size_t n_elems)
{
    const struct kern_quant *format = kern_quant_find(type);
    pool->type = gguf_type_info(type);
    pool->rng = rng_open(0, (uint64_t)type);
    pool->n_blocks = n_elems / pool->type->block_elems;
    pool->blocks = malloc(pool->n_blocks * pool->type->block_bytes);
    if (!pool->blocks)
        return false;
    float y[MAX_BLOCK];
    for (size_t i = 0; i < pool->n_blocks;) {
        uint8_t *block = pool->blocks + i * pool->type->block_bytes;
        rng_bytes(&pool->rng, block, pool->type->block_bytes);
        format->decode(block, y, pool->type->block_elems);
        if (fits(y, pool->type->block_elems, rms) &&
            (!format->find_invalid || format->find_invalid(block, 1) == 1))
            i++;
    }
    return true;
}

void random_blocks_close(struct random_blocks *pool)
{
    free(pool->blocks);
    pool->blocks = NULL;
}

void random_blocks_draw(struct random_blocks *pool, void *bytes, size_t n_bytes)
{
    size_t block_bytes = pool->type->block_bytes;
    size_t n_blocks = n_bytes / block_bytes;
    /* Runs of neighbours, so that small blocks do not need a random number each. */
    size_t run_blocks = MAX_BLOCK / pool->type->block_elems;
    uint8_t *to = bytes;
    while (n_blocks > 0) {
        size_t n = n_blocks < run_blocks ? n_blocks : run_blocks;
        size_t from = rng_below(&pool->rng, pool->n_blocks - run_blocks + 1);
        memcpy(to, pool->blocks + from * block_bytes, n * block_bytes);
        to += n * block_bytes;
        n_blocks -= n;
    }
}
