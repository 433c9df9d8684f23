/* Texts to tokens and back. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "clients/library/library.h"

/** What a call of assay_tokenize() has. */
struct tokens_out {
    int32_t *ids;
    size_t capacity;
    size_t *n;
};

static enum status tokenize(const struct assay_model *m, struct base_string text, unsigned flags,
                            const struct tokens_out *out, struct status_why *why)
{
    struct model_tokens tokens = {0};
    enum status status = assay_own_given(m, "the model", why);
    if (!status)
        status = assay_own_given(out->n, "the place of the number of tokens", why);
    if (!status && text.n_bytes)
        status = assay_own_given(text.data, "the text", why);
    if (!status && out->capacity)
        status = assay_own_given(out->ids, "the place of the tokens", why);
    if (!status && (flags & ~(unsigned)(ASSAY_BOS | ASSAY_SPECIAL)))
        status = status_fail(why, STATUS_USAGE, "flags are 0x%x, expected ASSAY_BOS, ASSAY_SPECIAL",
                             flags);
    if (status)
        return status;
    const struct model_tokenizer *tokenizer = model_tokenizer(m->model);
    if (flags & ASSAY_BOS)
        status = model_begin_text(tokenizer, &tokens, why);
    if (!status)
        status = model_tokenize(tokenizer, text.data ? text.data : "", text.n_bytes,
                                flags & ASSAY_SPECIAL, &tokens, why);
    if (!status && out->capacity && tokens.n)
        memcpy(out->ids, tokens.ids, base_min(tokens.n, out->capacity) * sizeof *out->ids);
    *out->n = tokens.n;
    free(tokens.ids);
    return status;
}

enum assay_status assay_tokenize(const struct assay_model *model, const char *text, size_t n_bytes,
                                 unsigned flags, int32_t *ids, size_t capacity, size_t *n,
                                 struct assay_why *why)
{
    struct status_why own = {""};
    const struct tokens_out out = {ids, capacity, n};
    return assay_own_end(tokenize(model, (struct base_string){text, n_bytes}, flags, &out, &own),
                         &own, why);
}

static enum status spell(const struct assay_model *m, int32_t id, char *bytes, size_t capacity,
                         size_t *n, struct status_why *why)
{
    enum status status = assay_own_given(m, "the model", why);
    if (!status)
        status = assay_own_given(n, "the place of the number of bytes", why);
    if (!status && capacity)
        status = assay_own_given(bytes, "the place of the bytes", why);
    if (status)
        return status;
    const struct model_tokenizer *tokenizer = model_tokenizer(m->model);
    if (id < 0 || (size_t)id >= model_n_vocab(tokenizer))
        return status_fail(why, STATUS_USAGE, "there is no token %" PRId32 ", expected 0 to %zu",
                           id, model_n_vocab(tokenizer) - 1);
    *n = model_token_bytes(tokenizer, id, bytes, capacity);
    return STATUS_OK;
}

enum assay_status assay_token_bytes(const struct assay_model *model, int32_t id, char *bytes,
                                    size_t capacity, size_t *n, struct assay_why *why)
{
    struct status_why own = {""};
    return assay_own_end(spell(model, id, bytes, capacity, n, &own), &own, why);
}
