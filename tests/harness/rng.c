#include "tests/harness/rng.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

uint64_t rng_seed(void)
{
    static uint64_t seed;
    if (seed == 0) {
        const char *text = getenv("ASSAY_TEST_SEED");
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        uint64_t clock_seed = (uint64_t)now.tv_sec * 1000000007u ^ (uint64_t)now.tv_nsec;
        seed = text ? strtoull(text, NULL, 0) : clock_seed % 1000000000u;
        seed += seed == 0;
        printf("seed: ASSAY_TEST_SEED=%" PRIu64 "\n", seed);
        fflush(stdout);
    }
    return seed;
}

struct rng rng_open(uint64_t seed, uint64_t stream)
{
    struct rng r = {seed * 0x9e3779b97f4a7c15u ^ stream * 0xd1b54a32d192ed03u};
    rng_next(&r);
    return r;
}

uint64_t rng_next(struct rng *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

size_t rng_below(struct rng *r, size_t limit)
{
    return (size_t)(rng_next(r) % limit);
}

float rng_float(struct rng *r, float low, float high)
{
    float unit = (float)(rng_next(r) >> 40) * 0x1p-24f;
    return low + (high - low) * unit;
}

float rng_normal(struct rng *r)
{
    double u = ((double)(rng_next(r) >> 11) + 0.5) * 0x1p-53;
    double v = (double)(rng_next(r) >> 11) * 0x1p-53;
    return (float)(sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v));
}

float rng_rough(struct rng *r)
{
    uint64_t bits = rng_next(r);
    int32_t sum = 0;
    for (unsigned shift = 0; shift < 64; shift += 16)
        sum += (int32_t)(bits >> shift & 0xffff) * 2 - 0xffff;
    return (float)sum * (1.7320508f / 0x1p17f); /* a uniform number of 4 has the variance 1/12 */
}

void rng_bytes(struct rng *r, void *data, size_t n_bytes)
{
    uint8_t *bytes = data;
    for (size_t i = 0; i < n_bytes; i += 8) {
        uint64_t word = rng_next(r);
        memcpy(bytes + i, &word, n_bytes - i < 8 ? n_bytes - i : 8);
    }
}
