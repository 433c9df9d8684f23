/**
 * A keyed hash of short byte strings. Its mixing step, the loading of what is left and the
 * constants are those of wyhash (Wang Yi, in the public domain), but for the constant of the
 * length, which is 2^64 divided by the golden ratio. The hashes are not wyhash's.
 */
#ifndef BASE_TEXT_HASH_H
#define BASE_TEXT_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/** Both halves of a 128-bit product, folded: every input bit reaches every output bit. */
static inline uint64_t base_hash_mix(uint64_t a, uint64_t b)
{
    __extension__ typedef unsigned __int128 wide;
    wide product = (wide)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t base_hash_load(const char *p, size_t n_bytes)
{
    uint32_t low, high;
    if (n_bytes >= 8) {
        uint64_t w;
        memcpy(&w, p, 8);
        return w;
    }
    if (n_bytes >= 4) { /* the two words overlap */
        memcpy(&low, p, 4);
        memcpy(&high, p + n_bytes - 4, 4);
        return (uint64_t)high << 32 | low;
    }
    if (n_bytes == 0)
        return 0;
    return (uint64_t)(uint8_t)p[0] << 16 | (uint64_t)(uint8_t)p[n_bytes / 2] << 8 |
           (uint8_t)p[n_bytes - 1];
}

/**
 * Hash n_bytes at p. With a random seed no file can be made whose strings all collide;
 * no result may depend on the value.
 */
static inline uint64_t base_hash_bytes(uint64_t seed, const char *p, size_t n_bytes)
{
    uint64_t h = seed ^ ((uint64_t)n_bytes * UINT64_C(0x9e3779b97f4a7c15));
    for (; n_bytes > 8; p += 8, n_bytes -= 8)
        h = base_hash_mix(h ^ base_hash_load(p, 8), UINT64_C(0xe7037ed1a0b428db));
    h = base_hash_mix(h ^ base_hash_load(p, n_bytes), UINT64_C(0x8ebc6af09c88c6e3));
    return base_hash_mix(h, UINT64_C(0x589965cc75374cc3));
}

#endif
