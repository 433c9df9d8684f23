/* The types of -ctk and -ctv. */
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/text/number.h"
#include "cli/options/common.h"
#include "cli/options/value.h"
#include "kernels/kernels.h"

#define NAME(TYPE, name) {GGUF_TYPE_##TYPE, #TYPE, #name},
static const struct {
    enum gguf_type type;
    const char *name, *engines; /* options take both, in any case of letters */
} types[] = {KERN_ROUND_TYPES(NAME)};
enum { N_TYPES = sizeof types / sizeof *types };

/** Where exceptions are for. */
static const char *const wheres[MODEL_KV_N_WHERE] = {
    [MODEL_KV_LAYERS] = "layers",
    [MODEL_KV_WINDOWS] = "windows",
    [MODEL_KV_FULL] = "full",
    [MODEL_KV_INDEXER] = "indexer",
};

/** An element of a list, up to the next ','. */
struct element {
    const char *text;
    size_t n;
};

/** The next element, and what comes after it in *list; with a ':' it is an exception of the type
 * before. */
static bool next(struct element *e, const char **list)
{
    if (!*list)
        return false;
    *e = (struct element){*list, strcspn(*list, ",")};
    *list = e->text[e->n] ? e->text + e->n + 1 : NULL;
    return true;
}

static bool is_exception(const struct element *e)
{
    return memchr(e->text, ':', e->n) != NULL;
}

size_t cli_kv_count(const struct cli_model_settings *s)
{
    size_t n = s->cache_k.n > s->cache_v.n ? s->cache_k.n : s->cache_v.n;
    return n ? n : 1;
}

static bool is_name(const char *name, const char *text, size_t n)
{
    return strlen(name) == n && strncasecmp(name, text, n) == 0;
}

/** A number above 0 that float32 has, of less than 24 characters; 0: the text is not one. */
static float scale_of(const char *text, size_t n)
{
    struct base_number number;
    char *end;
    if (n == 0 || n >= sizeof number.text || strspn(text, "0123456789.eE+-") < n)
        return 0;
    memcpy(number.text, text, n);
    number.text[n] = '\0';
    float scale = strtof(number.text, &end);
    return *end == '\0' && scale > 0 && scale <= FLT_MAX ? scale : 0;
}

/** A type, or with a scale of the tensor TYPE@SCALE, 1 being none, or TYPE@calibrated. */
static enum status find_type(struct model_kv_type *out, const char *option, const struct element *e,
                             struct status_why *why)
{
    const char *at = memchr(e->text, '@', e->n);
    size_t n = at ? (size_t)(at - e->text) : e->n, t = 0;
    while (t < N_TYPES && !is_name(types[t].name, e->text, n) &&
           !is_name(types[t].engines, e->text, n))
        t++;
    if (t < N_TYPES) {
        bool calibrated = at && is_name("calibrated", at + 1, e->n - n - 1);
        float scale = at && !calibrated ? scale_of(at + 1, e->n - n - 1) : 1;
        *out = (struct model_kv_type){types[t].type, scale == 1 ? 0 : scale, calibrated};
        if (!at || (scale > 0 && kern_round_is_scaled(out->type)))
            return STATUS_OK;
        return status_fail(why, STATUS_USAGE,
                           "%s: '%.*s' has no scale of a tensor, expected fp8_e4m3 or fp8_e5m2, @ "
                           "and a number above 0, as in fp8_e4m3@0.02, or calibrated",
                           option, e->n < 32 ? (int)e->n : 32, e->text);
    }
    return status_fail(why, STATUS_USAGE,
                       "%s: '%.*s' is no type of a cache, expected f32, f16, bf16, q8_0, q4_0, "
                       "q4_1, iq4_nl, q5_0, q5_1, q6_0, q8_kv, fp8_e4m3, fp8_e5m2, mxfp8, "
                       "nvfp4 or fp8_ds_mla",
                       option, e->n < 32 ? (int)e->n : 32, e->text);
}

/** A number of at most 4 digits at the beginning; *e is then what comes after it. */
static bool take_number(uint32_t *out, struct element *e)
{
    size_t n = 0;
    for (*out = 0; n < e->n && n < 4 && e->text[n] >= '0' && e->text[n] <= '9'; n++)
        *out = 10 * *out + (uint32_t)(e->text[n] - '0');
    *e = (struct element){e->text + n, e->n - n};
    return n > 0;
}

/** "layers 2", "layers 0-3", "layers 28-", or a word. */
static bool find_where(struct model_kv_exception *out, struct element e)
{
    for (int w = 0; w < MODEL_KV_N_WHERE; w++)
        if (w != MODEL_KV_LAYERS && is_name(wheres[w], e.text, e.n)) {
            out->where = (enum model_kv_where)w;
            return true;
        }
    size_t n = strlen("layer");
    if (e.n < n || strncasecmp(e.text, "layer", n) != 0)
        return false;
    n += e.n > n && (e.text[n] == 's' || e.text[n] == 'S');
    while (n < e.n && e.text[n] == ' ')
        n++;
    e = (struct element){e.text + n, e.n - n};
    out->where = MODEL_KV_LAYERS;
    bool found = take_number(&out->from, &e);
    out->to = out->from;
    if (!found || e.n == 0)
        return found;
    bool range = *e.text == '-';
    e = (struct element){e.text + 1, e.n - 1};
    out->to = UINT32_MAX;
    found = range && (e.n == 0 || take_number(&out->to, &e));
    return found && e.n == 0 && out->from <= out->to;
}

static enum status add_exception(struct model_kv_exceptions *but, const char *option,
                                 const struct element *e, struct status_why *why)
{
    enum { MOST = sizeof but->at / sizeof *but->at };
    const char *colon = memchr(e->text, ':', e->n);
    size_t n = (size_t)(colon - e->text);
    if (but->n == MOST)
        return status_fail(why, STATUS_USAGE, "%s: more than %d exceptions of one type", option,
                           MOST);
    struct model_kv_exception *out = &but->at[but->n++];
    bool is_v = strcmp(option, "-ctv") == 0, found = find_where(out, (struct element){e->text, n});
    if (!found || (is_v && out->where == MODEL_KV_INDEXER))
        return status_fail(why, STATUS_USAGE,
                           "%s: '%.*s' names no layers, expected layers A-B, layers A-, layer A, "
                           "windows or full%s",
                           option, n < 32 ? (int)n : 32, e->text,
                           is_v ? "" : ", or indexer for the keys of one");
    enum status status =
        find_type(&out->type, option, &(struct element){colon + 1, e->n - n - 1}, why);
    if (!status && out->where == MODEL_KV_INDEXER && out->type.calibrated)
        status = status_fail(why, STATUS_USAGE,
                             "%s: an indexer's keys do not calibrate a scale, expected a number "
                             "after @",
                             option);
    return status;
}

void cli_kv_clear(struct cli_kv_list *caches)
{
    free(caches->items);
    *caches = (struct cli_kv_list){0};
}

static enum status read_caches(struct cli_kv_list *out, const char *option, const char *list,
                               struct status_why *why)
{
    size_t capacity = 0;
    enum status status = STATUS_OK;
    for (struct element e; next(&e, &list) && !status;)
        if (!is_exception(&e)) {
            status = base_array_reserve(out->items, capacity, out->n + 1, "types of caches", why);
            if (!status) {
                out->items[out->n] = (struct cli_kv_type){0};
                status = find_type(&out->items[out->n++].type, option, &e, why);
            }
        } else if (out->n == 0) {
            status = status_fail(why, STATUS_USAGE,
                                 "%s: '%.*s' is an exception of no type, expected a type before "
                                 "it, as in q8_0,layers 0-3:f16",
                                 option, e.n < 32 ? (int)e.n : 32, e.text);
        } else {
            status = add_exception(&out->items[out->n - 1].but, option, &e, why);
        }
    return status;
}

enum status cli_kv_set(const struct cli_value *s, struct status_why *why)
{
    struct cli_kv_list caches = {0}, *target = s->target;
    char option[16];
    snprintf(option, sizeof option, "%.*s", (int)strcspn(s->option->names, " "), s->option->names);
    enum status status = read_caches(&caches, option, s->value, why);
    cli_kv_clear(status ? &caches : target);
    if (!status)
        *target = caches;
    return status;
}

/* The i-th candidate of a list, or its only one. */
static struct cli_kv_type cache_at(const struct cli_kv_list *caches, size_t i)
{
    return caches->n ? caches->items[caches->n > 1 ? i : 0] : (struct cli_kv_type){0};
}

struct model_kv_types cli_kv_types(const struct cli_model_settings *s, size_t i)
{
    struct cli_kv_type k = cache_at(&s->cache_k, i), v = cache_at(&s->cache_v, i);
    return (struct model_kv_types){
        .k = k.type, .v = v.type, .unturned = s->no_kv_rotation, .k_but = k.but, .v_but = v.but};
}

enum status cli_kv_check(const struct cli_model_settings *s, struct status_why *why)
{
    size_t n_k = s->cache_k.n, n_v = s->cache_v.n;
    return n_k <= 1 || n_v <= 1 || n_k == n_v
               ? STATUS_OK
               : status_fail(why, STATUS_USAGE,
                             "-ctk has %zu types and -ctv %zu; the first of both go together, and "
                             "so on: expected as many, or one",
                             n_k, n_v);
}

const char *cli_kv_spelling(char out[CLI_KV_SPELLING], struct model_kv_type type,
                            const struct model_kv_exceptions *but)
{
    char name[MODEL_KV_TYPE_NAME];
    size_t n = (size_t)snprintf(out, CLI_KV_SPELLING, "%s", model_kv_type_name(name, type));
    for (size_t i = 0; i < but->n; i++) {
        const struct model_kv_exception *e = &but->at[i];
        char range[32] = "";
        if (e->where == MODEL_KV_LAYERS && e->to == UINT32_MAX)
            snprintf(range, sizeof range, " %u-", e->from);
        else if (e->where == MODEL_KV_LAYERS && e->to == e->from)
            snprintf(range, sizeof range, " %u", e->from);
        else if (e->where == MODEL_KV_LAYERS)
            snprintf(range, sizeof range, " %u-%u", e->from, e->to);
        n += (size_t)snprintf(out + n, CLI_KV_SPELLING - n, ",%s%s:%s", wheres[e->where], range,
                              model_kv_type_name(name, e->type));
    }
    return out;
}

const char *cli_kv_label(char out[DOC_KV_LABEL], const struct model_kv_types *kv)
{
    char k[CLI_KV_SPELLING], v[CLI_KV_SPELLING];
    return doc_kv_label(out, cli_kv_spelling(k, kv->k, &kv->k_but),
                        cli_kv_spelling(v, kv->v, &kv->v_but), !kv->unturned);
}
