#include "eval/input/draw.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { SHIFT_WORDS = 397, SEED = 1 };

void eval_twister_seed(struct eval_twister *t, uint32_t seed)
{
    t->words[0] = seed;
    for (uint32_t i = 1; i < EVAL_TWISTER_WORDS; i++)
        t->words[i] = UINT32_C(1812433253) * (t->words[i - 1] ^ (t->words[i - 1] >> 30)) + i;
    t->next = EVAL_TWISTER_WORDS;
}

static void regenerate(struct eval_twister *t)
{
    for (size_t i = 0; i < EVAL_TWISTER_WORDS; i++) {
        uint32_t y = (t->words[i] & UINT32_C(0x80000000)) |
                     (t->words[(i + 1) % EVAL_TWISTER_WORDS] & UINT32_C(0x7fffffff));
        t->words[i] = t->words[(i + SHIFT_WORDS) % EVAL_TWISTER_WORDS] ^ (y >> 1) ^
                      (y & 1 ? UINT32_C(0x9908b0df) : 0);
    }
    t->next = 0;
}

uint32_t eval_twister_next(struct eval_twister *t)
{
    if (t->next == EVAL_TWISTER_WORDS)
        regenerate(t);
    uint32_t y = t->words[t->next++];
    y ^= y >> 11;
    y ^= (y << 7) & UINT32_C(0x9d2c5680);
    y ^= (y << 15) & UINT32_C(0xefc60000);
    return y ^ (y >> 18);
}

size_t eval_twister_below(struct eval_twister *t, uint32_t n)
{
    uint64_t product = (uint64_t)eval_twister_next(t) * n;
    if ((uint32_t)product < n) {
        uint32_t threshold = (0 - n) % n;
        while ((uint32_t)product < threshold)
            product = (uint64_t)eval_twister_next(t) * n;
    }
    return (size_t)(product >> 32);
}

/** In float32, as the peer computes it; its result may be n, which is beyond the end. */
static size_t scaled(struct eval_twister *t, size_t n)
{
    const float scale = 0x1p-32F;
    float share = scale * (float)eval_twister_next(t);
    size_t i = (size_t)(share * (float)n);
    return i < n ? i : n - 1;
}

enum status eval_draw(size_t **out, size_t n, size_t n_drawn, enum eval_draw how,
                      struct status_why *why)
{
    assert(n_drawn <= n && n <= INT32_MAX);
    *out = NULL;
    size_t *left = malloc((n ? n : 1) * sizeof *left);
    size_t *drawn = malloc((n_drawn ? n_drawn : 1) * sizeof *drawn);
    if (!left || !drawn) {
        free(left);
        free(drawn);
        return status_fail(why, STATUS_MEMORY, "no memory to draw from %zu tasks", n);
    }
    for (size_t i = 0; i < n; i++)
        left[i] = i;
    struct eval_twister twister;
    eval_twister_seed(&twister, SEED);
    for (size_t k = 0, n_left = n; k < n_drawn; k++, n_left--) {
        size_t i = how == EVAL_DRAW_UNIFORM ? eval_twister_below(&twister, (uint32_t)n_left)
                                            : scaled(&twister, n_left);
        drawn[k] = left[i];
        if (how == EVAL_DRAW_UNIFORM)
            memmove(left + i, left + i + 1, (n_left - i - 1) * sizeof *left);
        else
            left[i] = left[n_left - 1];
    }
    free(left);
    *out = drawn;
    return STATUS_OK;
}
