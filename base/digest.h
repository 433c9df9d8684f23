/**
 * SHA-256 (libcrypto's) as results name it: 64 lower-case hexadecimal digits.
 */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum {
    BASE_HEX = 65, /* 64 digits and a NUL */
    BASE_SHA256_BYTES = 32,
    BASE_SHA256_DOUBLES = 4 /* that have as many bytes */
};

/** A digest that is fed piece by piece. Failures stick: add does nothing, close reports. */
struct base_digest;

/** NULL where there is no memory, which the functions below accept; closing then reports it. */
struct base_digest *base_digest_open(void);
void base_digest_add(struct base_digest *digest, const void *data, size_t n_bytes);
/** Write the digits ("" on failure) and free the digest. Fails: STATUS_MEMORY. */
enum status base_digest_close(struct base_digest *digest, char hex[BASE_HEX],
                              struct status_why *why);

/** base_digest_close with the digest as bytes, all zero on failure. */
enum status base_digest_close_bytes(struct base_digest *digest, uint8_t bytes[BASE_SHA256_BYTES],
                                    struct status_why *why);

/** Free a digest without its result; NULL is allowed. */
void base_digest_discard(struct base_digest *digest);

/** The digits of a digest's bytes. */
void base_digest_hex(char hex[BASE_HEX], const uint8_t bytes[BASE_SHA256_BYTES]);

/** And the bytes of its digits, which must be 64 of them. */
void base_digest_from_hex(uint8_t bytes[BASE_SHA256_BYTES], const char hex[BASE_HEX]);

/** SHA-256 of bytes in memory. Fails: STATUS_MEMORY. */
enum status base_sha256(char hex[BASE_HEX], const void *data, size_t n_bytes,
                        struct status_why *why);

/** SHA-256 of ids as little-endian int32, one after the other. */
enum status base_sha256_ids(char hex[BASE_HEX], const int32_t *ids, size_t n,
                            struct status_why *why);

#endif
