#include "base/random.h"

enum { SHIFT_WORDS = 397 };

void base_twister_seed(struct base_twister *t, uint32_t seed)
{
    t->words[0] = seed;
    for (uint32_t i = 1; i < BASE_TWISTER_WORDS; i++)
        t->words[i] = UINT32_C(1812433253) * (t->words[i - 1] ^ (t->words[i - 1] >> 30)) + i;
    t->next = BASE_TWISTER_WORDS;
}

static void regenerate(struct base_twister *t)
{
    for (size_t i = 0; i < BASE_TWISTER_WORDS; i++) {
        uint32_t y = (t->words[i] & UINT32_C(0x80000000)) |
                     (t->words[(i + 1) % BASE_TWISTER_WORDS] & UINT32_C(0x7fffffff));
        t->words[i] = t->words[(i + SHIFT_WORDS) % BASE_TWISTER_WORDS] ^ (y >> 1) ^
                      (y & 1 ? UINT32_C(0x9908b0df) : 0);
    }
    t->next = 0;
}

uint32_t base_twister_next(struct base_twister *t)
{
    if (t->next == BASE_TWISTER_WORDS)
        regenerate(t);
    uint32_t y = t->words[t->next++];
    y ^= y >> 11;
    y ^= (y << 7) & UINT32_C(0x9d2c5680);
    y ^= (y << 15) & UINT32_C(0xefc60000);
    return y ^ (y >> 18);
}

size_t base_twister_below(struct base_twister *t, uint32_t n)
{
    uint64_t product = (uint64_t)base_twister_next(t) * n;
    if ((uint32_t)product < n) {
        uint32_t threshold = (0 - n) % n;
        while ((uint32_t)product < threshold)
            product = (uint64_t)base_twister_next(t) * n;
    }
    return (size_t)(product >> 32);
}
