/* The types of -ctk and -ctv. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cli/options/common.h"
#include "kernels/kernels.h"

#define NAME(TYPE, name) {GGUF_TYPE_##TYPE, #TYPE, #name},
static const struct {
    enum gguf_type type;
    const char *name, *engines; /* options take both, in any case of letters */
} types[] = {KERN_ROUND_TYPES(NAME)};
enum { N_TYPES = sizeof types / sizeof *types };

static size_t n_names(const char *list)
{
    size_t n = list != NULL;
    for (; list && *list; list++)
        n += *list == ',';
    return n;
}

size_t cli_kv_count(const struct cli_model_settings *s)
{
    size_t n_k = n_names(s->cache_k), n_v = n_names(s->cache_v), n = n_k > n_v ? n_k : n_v;
    return n ? n : 1;
}

static bool is_name(const char *name, const char *text, size_t n)
{
    return strlen(name) == n && strncasecmp(name, text, n) == 0;
}

/* The i-th name of a list, or its only one. */
static enum status find(enum gguf_type *out, const char *option, const char *list, size_t i,
                        struct status_why *why)
{
    *out = GGUF_TYPE_F32;
    if (!list)
        return STATUS_OK;
    for (i = n_names(list) > 1 ? i : 0; i; i--)
        list = strchr(list, ',') + 1;
    size_t n = strcspn(list, ",");
    for (size_t t = 0; t < N_TYPES; t++)
        if (is_name(types[t].name, list, n) || is_name(types[t].engines, list, n)) {
            *out = types[t].type;
            return STATUS_OK;
        }
    return status_fail(why, STATUS_USAGE,
                       "%s: '%.*s' is no type of a cache, expected f32, f16, bf16, q8_0, q4_0, "
                       "q4_1, iq4_nl, q5_0, q5_1, q6_0, q8_kv, fp8_e4m3, fp8_e5m2 or nvfp4",
                       option, n < 32 ? (int)n : 32, list);
}

enum status cli_kv_types(struct model_kv_types *out, const struct cli_model_settings *s, size_t i,
                         struct status_why *why)
{
    *out = (struct model_kv_types){.unturned = s->no_kv_rotation};
    enum status status = find(&out->k, "-ctk", s->cache_k, i, why);
    return status ? status : find(&out->v, "-ctv", s->cache_v, i, why);
}

enum status cli_kv_check(const struct cli_model_settings *s, struct status_why *why)
{
    size_t n_k = n_names(s->cache_k), n_v = n_names(s->cache_v);
    if (n_k > 1 && n_v > 1 && n_k != n_v)
        return status_fail(why, STATUS_USAGE,
                           "-ctk has %zu types and -ctv %zu; the first of both go together, and so "
                           "on: expected as many, or one",
                           n_k, n_v);
    enum status status = STATUS_OK;
    struct model_kv_types pair;
    for (size_t i = 0; i < cli_kv_count(s) && !status; i++)
        status = cli_kv_types(&pair, s, i, why);
    return status;
}

const char *cli_kv_label(char out[CLI_KV_LABEL], const struct model_kv_types *kv)
{
    size_t n = 0;
    const struct {
        const char *what;
        enum gguf_type type;
    } parts[] = {{"K", kv->k}, {"V", kv->v}};
    out[0] = '\0';
    for (size_t i = 0; i < 2; i++)
        if (parts[i].type != GGUF_TYPE_F32)
            n += (size_t)snprintf(out + n, CLI_KV_LABEL - n, " %s %s", parts[i].what,
                                  gguf_type_name((uint32_t)parts[i].type));
    if (n && kv->unturned)
        snprintf(out + n, CLI_KV_LABEL - n, " unrotated");
    return out;
}
