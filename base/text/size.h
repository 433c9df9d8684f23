/** Sizes as people write them. */
#ifndef BASE_TEXT_SIZE_H
#define BASE_TEXT_SIZE_H

#include <stdbool.h>
#include <stdint.h>

/**
 * A number, with a fraction or not, and a unit after it, with a blank between or not: none or B,
 * KiB, MiB, GiB, TiB (of 1024) or kB, MB, GB, TB (of 1000); letters in any case. Fractions of a
 * byte are cut off. False: it is nothing of that kind, or 2^63 bytes or more.
 */
bool base_size_parse(const char *text, uint64_t *n_bytes);

#endif
