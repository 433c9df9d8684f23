#include "clients/documents/results/cache.h"

#include <math.h>
#include <string.h>

#include "gguf/type.h"

/* Bytes of one number of keys ("k") or values ("v"), or NaN. */
static double bytes_of(struct base_field model, const char *which)
{
    struct base_field types = base_field_find(model, "kv_types");
    const char *name = types.json ? base_field_text(types, which) : "F16";
    name = strcmp(name, "F32") == 0 ? "F16" : name; /* not rounded: as caches are by default */
    size_t n = strcspn(name, "@");                  /* a scale of the tensor takes no room */
    for (uint32_t id = 0; id < GGUF_TYPE_LIMIT; id++) {
        const struct gguf_type_info *type = gguf_type_listed(id);
        if (type->block_bytes && strlen(type->name) == n && strncmp(type->name, name, n) == 0)
            return (double)type->block_bytes / type->block_elems;
    }
    return (double)NAN;
}

double doc_cache_bytes(struct base_field model, double n_tokens)
{
    struct base_field cache = base_field_find(model, "cache");
    if (!cache.json)
        return (double)NAN;
    double n_recent = fmin(n_tokens, (double)doc_count(cache, "window"));
    double state_bytes = (double)doc_count(cache, "state_bytes");
    if (base_field_find(model, "kv_types.token_bytes").json) /* layers have several types */
        return n_tokens * base_field_real_or_null(model, "kv_types.token_bytes") +
               n_recent * base_field_real_or_null(model, "kv_types.window_bytes") + state_bytes;
    double k =
        n_tokens * (double)doc_count(cache, "k") + n_recent * (double)doc_count(cache, "window_k");
    double v =
        n_tokens * (double)doc_count(cache, "v") + n_recent * (double)doc_count(cache, "window_v");
    return k * bytes_of(model, "k") + v * bytes_of(model, "v") + state_bytes;
}
