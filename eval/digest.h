/**
 * SHA-256 (libcrypto's) as results name it: 64 lower-case hexadecimal digits.
 */
#ifndef EVAL_DIGEST_H
#define EVAL_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#include "gguf/status.h"

enum {
    EVAL_HEX = 65, /* 64 digits and a NUL */
    EVAL_SHA256_BYTES = 32,
    EVAL_SHA256_DOUBLES = 4 /* that have as many bytes */
};

/** A digest that is fed piece by piece. Failures stick: add does nothing, close reports. */
struct eval_digest;

/** Never fails visibly; NULL stands for a digest without memory. Pass it to close. */
struct eval_digest *eval_digest_open(void);
void eval_digest_add(struct eval_digest *digest, const void *data, size_t n_bytes);
/** Write the digits ("" on failure) and free the digest. Fails: STATUS_MEMORY. */
enum status eval_digest_close(struct eval_digest *digest, char hex[EVAL_HEX],
                              struct status_why *why);

/** The same with the digest as bytes, all zero on failure. */
enum status eval_digest_close_bytes(struct eval_digest *digest, uint8_t bytes[EVAL_SHA256_BYTES],
                                    struct status_why *why);

/** Free a digest that nobody wants to know; NULL is allowed. */
void eval_digest_discard(struct eval_digest *digest);

/** The digits of a digest's bytes. */
void eval_digest_hex(char hex[EVAL_HEX], const uint8_t bytes[EVAL_SHA256_BYTES]);

/** SHA-256 of bytes in memory. Fails: STATUS_MEMORY. */
enum status eval_sha256(char hex[EVAL_HEX], const void *data, size_t n_bytes,
                        struct status_why *why);

/** SHA-256 of ids as little-endian int32, one after the other. */
enum status eval_sha256_ids(char hex[EVAL_HEX], const int32_t *ids, size_t n,
                            struct status_why *why);

#endif
