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

/** Whether it is a bare number, which is less than the bytes of any model: its unit is missing. */
bool base_size_lacks_unit(const char *text);

struct base_size_unit {
    const char *name; /* "MB" */
    double n_bytes;
};

/** The unit that a size was written with, or one that is good for sizes up to n_bytes: the former
 *  where it has one of kB, KiB or more. text: may be NULL. Static storage. */
const struct base_size_unit *base_size_unit(const char *text, double n_bytes);

enum { BASE_SIZE_BYTES = 32 };

/** Write "98.86": a size in a unit, with four digits or all those of a whole number. Returns out.
 */
const char *base_size_digits(char out[BASE_SIZE_BYTES], double n_bytes,
                             const struct base_size_unit *unit);
/** Write a size with its unit: "98.86 MB". */
const char *base_size_text(char out[BASE_SIZE_BYTES], double n_bytes,
                           const struct base_size_unit *unit);

#endif
