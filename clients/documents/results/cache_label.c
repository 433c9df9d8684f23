#include "clients/documents/results/cache_label.h"

#include <stdio.h>
#include <string.h>

bool doc_kv_is_cut(const char *type)
{
    return strlen(type) > DOC_KV_SHOWN;
}

const char *doc_kv_label(char out[DOC_KV_LABEL], const char *k, const char *v, bool rotated)
{
    const char *const types[] = {k, v};
    size_t n = 0;
    out[0] = '\0';
    for (size_t i = 0; i < 2; i++)
        if (strcmp(types[i], "F32") != 0)
            n += (size_t)snprintf(out + n, DOC_KV_LABEL - n, " %c %.*s%s", "KV"[i], DOC_KV_SHOWN,
                                  types[i], doc_kv_is_cut(types[i]) ? "..." : "");
    if (n && !rotated)
        snprintf(out + n, DOC_KV_LABEL - n, " unrotated");
    return out;
}
