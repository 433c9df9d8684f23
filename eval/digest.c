#include "eval/digest.h"

#include <openssl/evp.h>
#include <stdbool.h>
#include <stdlib.h>

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

enum status eval_digest_close(struct eval_digest *digest, char hex[EVAL_HEX],
                              struct status_why *why)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char bytes[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    bool ok = digest && digest->ok && EVP_DigestFinal_ex(digest->context, bytes, &n) == 1 &&
              2 * n + 1 == EVAL_HEX;
    if (digest)
        EVP_MD_CTX_free(digest->context);
    free(digest);
    hex[0] = '\0';
    if (!ok)
        return status_fail(why, STATUS_MEMORY, "libcrypto cannot compute a SHA-256");
    for (unsigned i = 0; i < n; i++) {
        hex[2 * i] = digits[bytes[i] >> 4];
        hex[2 * i + 1] = digits[bytes[i] & 15];
    }
    hex[2 * n] = '\0';
    return STATUS_OK;
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
