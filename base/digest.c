#include "base/digest.h"

/*
 * The functions of one algorithm. OpenSSL calls them deprecated, since they pass over its
 * configuration and its providers: to load these takes a millisecond of each run.
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct base_digest {
    SHA256_CTX context;
    bool ok;
};

struct base_digest *base_digest_open(void)
{
    struct base_digest *digest = calloc(1, sizeof *digest);
    if (digest)
        digest->ok = SHA256_Init(&digest->context) == 1;
    return digest;
}

void base_digest_add(struct base_digest *digest, const void *data, size_t n_bytes)
{
    if (digest)
        digest->ok = digest->ok && SHA256_Update(&digest->context, data, n_bytes) == 1;
}

void base_digest_discard(struct base_digest *digest)
{
    free(digest);
}

enum status base_digest_close_bytes(struct base_digest *digest, uint8_t bytes[BASE_SHA256_BYTES],
                                    struct status_why *why)
{
    memset(bytes, 0, BASE_SHA256_BYTES);
    if (!digest)
        return status_fail(why, STATUS_MEMORY, "no memory for a SHA-256");
    uint8_t result[BASE_SHA256_BYTES];
    bool ok = digest->ok && SHA256_Final(result, &digest->context) == 1;
    base_digest_discard(digest);
    if (!ok)
        return status_fail(why, STATUS_MEMORY, "libcrypto cannot compute a SHA-256");
    memcpy(bytes, result, sizeof result);
    return STATUS_OK;
}

void base_digest_hex(char hex[BASE_HEX], const uint8_t bytes[BASE_SHA256_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < BASE_SHA256_BYTES; i++) {
        hex[2 * i] = digits[bytes[i] >> 4];
        hex[2 * i + 1] = digits[bytes[i] & 15];
    }
    hex[BASE_HEX - 1] = '\0';
}

void base_digest_from_hex(uint8_t bytes[BASE_SHA256_BYTES], const char hex[BASE_HEX])
{
    for (size_t i = 0; i < BASE_SHA256_BYTES; i++)
        bytes[i] = (uint8_t)strtoul((const char[]){hex[2 * i], hex[2 * i + 1], '\0'}, NULL, 16);
}

enum status base_digest_close(struct base_digest *digest, char hex[BASE_HEX],
                              struct status_why *why)
{
    uint8_t bytes[BASE_SHA256_BYTES];
    enum status status = base_digest_close_bytes(digest, bytes, why);
    base_digest_hex(hex, bytes);
    if (status)
        hex[0] = '\0';
    return status;
}

enum status base_sha256(char hex[BASE_HEX], const void *data, size_t n_bytes,
                        struct status_why *why)
{
    struct base_digest *digest = base_digest_open();
    base_digest_add(digest, data, n_bytes);
    return base_digest_close(digest, hex, why);
}

enum status base_sha256_ids(char hex[BASE_HEX], const int32_t *ids, size_t n,
                            struct status_why *why)
{
    struct base_digest *digest = base_digest_open();
    unsigned char slab[4096];
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t id = (uint32_t)ids[i];
        for (int byte = 0; byte < 4; byte++)
            slab[used++] = (unsigned char)(id >> (8 * byte));
        if (used == sizeof slab) {
            base_digest_add(digest, slab, used);
            used = 0;
        }
    }
    base_digest_add(digest, slab, used);
    return base_digest_close(digest, hex, why);
}
