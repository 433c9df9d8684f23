#include "clients/probe/ask/windows.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/array.h"
#include "base/text/hash.h"
#include "base/text/utf8.h"

enum status probe_window_make(struct probe_window *out, const struct model_tokenizer *tokenizer,
                              const char *text, size_t n_bytes, size_t n, struct status_why *why)
{
    *out = (struct probe_window){.has_bos = model_adds_bos(tokenizer)};
    enum status status = STATUS_OK;
    if (out->has_bos)
        status = model_tokens_add(&out->tokens, model_token_bos(tokenizer), why);
    if (!status)
        status = model_tokenize(tokenizer, text, n_bytes, false, &out->tokens, why);
    if (status)
        return status;
    out->tokens.n = out->tokens.n < n ? out->tokens.n : n;
    out->n_prompt = out->tokens.n;
    out->text = malloc(n_bytes + 1);
    if (!out->text || base_array_new(out->ends, out->n_prompt + 1, "tokens", why))
        return status_fail(why, STATUS_MEMORY, "no memory for a text");
    memcpy(out->text, text, n_bytes);
    size_t at = 0;
    for (size_t i = 0; i < out->n_prompt; i++) {
        if (i || !out->has_bos)
            at += model_token_span(tokenizer, out->tokens.ids[i], text + at, n_bytes - at);
        at = at < n_bytes ? at : n_bytes;
        out->ends[i + 1] = at;
    }
    return STATUS_OK;
}

enum status probe_window_of_ids(struct probe_window *out, const struct model_tokenizer *tokenizer,
                                const int32_t *ids, size_t n, struct status_why *why)
{
    *out = (struct probe_window){.n_prompt = n,
                                 .has_bos = n > 0 && model_adds_bos(tokenizer) &&
                                            ids[0] == model_token_bos(tokenizer)};
    enum status status = STATUS_OK;
    for (size_t i = 0; i < n && !status; i++)
        status = model_tokens_add(&out->tokens, ids[i], why);
    return status;
}

void probe_window_free(struct probe_window *w)
{
    free(w->tokens.ids);
    free(w->text);
    free(w->ends);
    *w = (struct probe_window){.n_prompt = 0};
}

enum status probe_window_survives(bool *out, const struct probe_window *w,
                                  const struct model_tokenizer *tokenizer, size_t length,
                                  struct status_why *why)
{
    struct model_tokens again = {0};
    size_t n = w->text ? w->ends[length] : 0, from = w->has_bos;
    *out = false;
    if (length <= from || n == 0 || memchr(w->text, '\0', n) || base_utf8_first_bad(w->text, n) < n)
        return STATUS_OK;
    enum status status = model_tokenize(tokenizer, w->text, n, false, &again, why);
    *out = !status && again.n == length - from &&
           memcmp(again.ids, w->tokens.ids + from, again.n * sizeof *again.ids) == 0;
    free(again.ids);
    return status;
}

struct slot {
    int32_t id; /* -1: free; -2: several have these bytes */
    uint32_t at, n_bytes;
};

struct probe_names {
    struct slot *slots; /* [mask + 1] */
    size_t mask;
    char *bytes;
    size_t n_bytes, capacity, n_vocab;
    int32_t plain;
    uint64_t seed;
};

static struct slot *slot_of(const struct probe_names *names, const char *bytes, size_t n_bytes)
{
    for (size_t i = base_hash_bytes(names->seed, bytes, n_bytes);; i++) {
        struct slot *s = &names->slots[i & names->mask];
        if (s->id == -1 ||
            (s->n_bytes == n_bytes && memcmp(names->bytes + s->at, bytes, n_bytes) == 0))
            return s;
    }
}

/** " the", say: what joins with nothing before it, and is UTF-8. */
static bool is_plain(const char *bytes, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (!((bytes[i] >= 'a' && bytes[i] <= 'z')))
            return false;
    return n >= 3 && bytes[0] == ' ';
}

static enum status add(struct probe_names *names, const struct model_tokenizer *t, int32_t id,
                       struct status_why *why)
{
    size_t n = model_token_bytes(t, id, NULL, 0);
    if (n == 0 || n > UINT16_MAX)
        return STATUS_OK;
    if (base_array_reserve(names->bytes, names->capacity, names->n_bytes + n, "bytes", why))
        return STATUS_MEMORY;
    char *bytes = names->bytes + names->n_bytes;
    model_token_bytes(t, id, bytes, n);
    struct slot *s = slot_of(names, bytes, n);
    if (s->id != -1) {
        s->id = -2;
        return STATUS_OK;
    }
    *s = (struct slot){id, (uint32_t)names->n_bytes, (uint32_t)n};
    names->n_bytes += n;
    if (names->plain < 0 && is_plain(bytes, n))
        names->plain = id;
    return STATUS_OK;
}

enum status probe_names_make(struct probe_names **out, const struct model_tokenizer *tokenizer,
                             struct status_why *why)
{
    size_t n_vocab = model_n_vocab(tokenizer), n = 1;
    while (n < 2 * n_vocab + 2)
        n *= 2;
    *out = NULL;
    struct probe_names *names = calloc(1, sizeof *names);
    if (!names || base_array_new(names->slots, n, "tokens", why)) {
        free(names);
        return status_fail(why, STATUS_MEMORY, "no memory for %zu tokens", n_vocab);
    }
    names->mask = n - 1;
    names->n_vocab = n_vocab;
    names->plain = -1;
    if (getentropy(&names->seed, sizeof names->seed) != 0)
        names->seed = (uintptr_t)names; /* no result depends on it */
    for (size_t i = 0; i < n; i++)
        names->slots[i].id = -1;
    enum status status = STATUS_OK;
    for (size_t id = 0; id < n_vocab && !status; id++)
        status = add(names, tokenizer, (int32_t)id, why);
    if (status)
        probe_names_free(names);
    else
        *out = names;
    return status;
}

void probe_names_free(struct probe_names *names)
{
    if (!names)
        return;
    free(names->slots);
    free(names->bytes);
    free(names);
}

int32_t probe_names_find(const struct probe_names *names, const char *bytes, size_t n_bytes)
{
    const struct slot *s = slot_of(names, bytes, n_bytes);
    return s->id >= 0 ? s->id : -1;
}

int32_t probe_names_plain(const struct probe_names *names)
{
    return names->plain;
}

size_t probe_names_n_vocab(const struct probe_names *names)
{
    return names->n_vocab;
}
