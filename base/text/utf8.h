/** UTF-8: lengths by lead byte, strict checking, and the repair of invalid text. */
#ifndef BASE_TEXT_UTF8_H
#define BASE_TEXT_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Bytes that a lead byte announces (1 for anything that cannot lead). */
static inline size_t base_utf8_announced(char lead)
{
    uint8_t b = (uint8_t)lead;
    return b < 0xC0 ? 1 : b < 0xE0 ? 2 : b < 0xF0 ? 3 : 4;
}

/**
 * Bytes of the well-formed character at p (1..4), or 0 where there is none: a stray or missing
 * continuation byte, an overlong form, a surrogate, a value above U+10FFFF.
 * n_bytes >= 1: how many may be read.   code_point: may be NULL.
 */
size_t base_utf8_decode(const char *p, size_t n_bytes, uint32_t *code_point);

/** Bytes of the well-formed character that a text of n_bytes >= 1 ends with, or 0. */
size_t base_utf8_decode_last(const char *text, size_t n_bytes, uint32_t *code_point);

/** Write a code point (at most U+10FFFF); returns 1..4. */
size_t base_utf8_encode(uint32_t code_point, char out[4]);

/** The offset of the first byte that is not part of a well-formed character; n_bytes if none. */
size_t base_utf8_first_bad(const char *text, size_t n_bytes);

/**
 * Copy text, with U+FFFD (3 bytes) for each byte that is not part of a well-formed character.
 * out: room for 3 * n_bytes, or NULL to count only.   Returns the bytes written.
 */
size_t base_utf8_repair(const char *text, size_t n_bytes, char *out);

/**
 * UTF-16 as UTF-8; a byte-order mark in front is left out.
 * out: room for 3 bytes for each 2, or NULL to count only.   n_out: receives the bytes written.
 * Returns n_bytes, or the offset of what is no character: half of a surrogate pair, a last odd
 * byte.
 */
size_t base_utf8_from_utf16(const char *text, size_t n_bytes, bool big_endian, char *out,
                            size_t *n_out);

/** White space, as Python's str.isspace() has it. */
bool base_is_space(uint32_t code_point);

#endif
