/**
 * Random numbers that can be repeated: the 32-bit Mersenne Twister of C++ (std::mt19937,
 * Matsumoto and Nishimura 1998).
 */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

enum { BASE_TWISTER_WORDS = 624 };

/** The generator's state; fill it with base_twister_seed. */
struct base_twister {
    uint32_t words[BASE_TWISTER_WORDS];
    size_t next;
};

void base_twister_seed(struct base_twister *twister, uint32_t seed);
/** The next 32 bits. */
uint32_t base_twister_next(struct base_twister *twister);
/**
 * An even draw from [0, n), n at least 1: the upper half of 32 bits times n. Draws that would
 * favour some results are thrown away (Lemire 2019).
 */
size_t base_twister_below(struct base_twister *twister, uint32_t n);

#endif
