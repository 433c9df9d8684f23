#include "eval/digest.h"

#include <openssl/evp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct eval_digest {
    EVP_MD_CTX *context;
    bool ok;
};

struct eval_digest *eval_digest_open(void)
{
    struct eval_digest *digest = calloc(1, sizeof *digest);
    if (!digest)
        return NULL;
    digest->context = EVP_MD_CTX_new();
    digest->ok = digest->context && EVP_DigestInit_ex(digest->context, EVP_sha256(), NULL) == 1;
    return digest;
}

void eval_digest_add(struct eval_digest *digest, const void *data, size_t n_bytes)
{
    if (digest)
        digest->ok = digest->ok && EVP_DigestUpdate(digest->context, data, n_bytes) == 1;
}

void eval_digest_discard(struct eval_digest *digest)
{
    if (digest)
        EVP_MD_CTX_free(digest->context);
    free(digest);
}

enum status eval_digest_close_bytes(struct eval_digest *digest, uint8_t bytes[EVAL_SHA256_BYTES],
                                    struct status_why *why)
{
    unsigned n = 0;
    unsigned char result[EVP_MAX_MD_SIZE];
    bool ok = digest && digest->ok && EVP_DigestFinal_ex(digest->context, result, &n) == 1 &&
              n == EVAL_SHA256_BYTES;
    eval_digest_discard(digest);
    memset(bytes, 0, EVAL_SHA256_BYTES);
    if (!ok)
        return status_fail(why, STATUS_MEMORY, "libcrypto cannot compute a SHA-256");
    memcpy(bytes, result, EVAL_SHA256_BYTES);
    return STATUS_OK;
}

void eval_digest_hex(char hex[EVAL_HEX], const uint8_t bytes[EVAL_SHA256_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < EVAL_SHA256_BYTES; i++) {
        hex[2 * i] = digits[bytes[i] >> 4];
        hex[2 * i + 1] = digits[bytes[i] & 15];
    }
    hex[EVAL_HEX - 1] = '\0';
}

enum status eval_digest_close(struct eval_digest *digest, char hex[EVAL_HEX],
                              struct status_why *why)
{
    uint8_t bytes[EVAL_SHA256_BYTES];
    enum status status = eval_digest_close_bytes(digest, bytes, why);
    eval_digest_hex(hex, bytes);
    if (status != STATUS_OK)
        hex[0] = '\0';
    return status;
}

enum status eval_sha256(char hex[EVAL_HEX], const void *data, size_t n_bytes,
                        struct status_why *why)
{
    struct eval_digest *digest = eval_digest_open();
    eval_digest_add(digest, data, n_bytes);
    return eval_digest_close(digest, hex, why);
}

enum status eval_sha256_ids(char hex[EVAL_HEX], const int32_t *ids, size_t n,
                            struct status_why *why)
{
    struct eval_digest *digest = eval_digest_open();
    unsigned char slab[4096];
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t id = (uint32_t)ids[i];
        for (int byte = 0; byte < 4; byte++)
            slab[used++] = (unsigned char)(id >> (8 * byte));
        if (used == sizeof slab) {
            eval_digest_add(digest, slab, used);
            used = 0;
        }
    }
    eval_digest_add(digest, slab, used);
    return eval_digest_close(digest, hex, why);
}
