#include "eval/identity.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/text/quote.h"

/** Integers in memory are little-endian: gguf/cursor.h refuses other machines. */
static void add_u64(struct base_digest *digest, uint64_t value)
{
    base_digest_add(digest, &value, sizeof value);
}

enum status eval_vocab_id(char hex[BASE_HEX], const struct model *model, struct status_why *why)
{
    const struct model_tokenizer *tokenizer = model_tokenizer(model);
    return eval_vocab_id_with(hex, model,
                              model_adds_bos(tokenizer) ? model_token_bos(tokenizer) : -1,
                              model_n_vocab(tokenizer), why);
}

/** The rows of a head are the tokens' (model_open). */
enum status eval_vocab_id_with(char hex[BASE_HEX], const struct model *model, int32_t bos, size_t n,
                               struct status_why *why)
{
    const struct model_tokenizer *tokenizer = model_tokenizer(model);
    const uint32_t adds_bos = bos >= 0;
    struct base_digest *digest = base_digest_open();
    add_u64(digest, n);
    add_u64(digest, n);
    base_digest_add(digest, &adds_bos, sizeof adds_bos);
    base_digest_add(digest, &bos, sizeof bos);
    for (size_t i = 0; i < n; i++) {
        char filler[32];
        struct base_string text = {filler, 0};
        if (i < model_n_vocab(tokenizer))
            text = model_token_text(tokenizer, (int32_t)i);
        else
            text.n_bytes = (size_t)snprintf(filler, sizeof filler, "[PAD%zu]", i);
        add_u64(digest, text.n_bytes);
        base_digest_add(digest, text.data, text.n_bytes);
    }
    return base_digest_close(digest, hex, why);
}

static enum status check_texts(const struct model *base, const struct model *candidate, size_t n,
                               struct status_why *why)
{
    const struct model_tokenizer *p = model_tokenizer(base), *q = model_tokenizer(candidate);
    for (size_t i = 0; i < n; i++) {
        struct base_string a = model_token_text(p, (int32_t)i), b = model_token_text(q, (int32_t)i);
        struct base_quoted quoted_a, quoted_b;
        if (a.n_bytes == b.n_bytes && memcmp(a.data, b.data, a.n_bytes) == 0)
            continue;
        return status_fail(
            why, STATUS_FORMAT,
            "%s: token %zu is %s where %s has %s; only models of the same vocabulary "
            "can be compared",
            gguf_path(model_file(candidate)), i, base_quote(&quoted_b, b),
            gguf_path(model_file(base)), base_quote(&quoted_a, a));
    }
    return STATUS_OK;
}

/** The same texts must become the same ids. */
static enum status check_reading(const struct model *base, const struct model *candidate,
                                 struct status_why *why)
{
    struct model_difference d;
    char becomes[4 * MODEL_DIFFERENCE_BYTES] = "";
    const char *path = gguf_path(model_file(candidate)), *base_path = gguf_path(model_file(base));
    enum status status =
        model_tokenizer_compare(&d, model_tokenizer(base), model_tokenizer(candidate), why);
    if (status || model_difference_is_none(&d))
        return status;
    if (*d.text)
        snprintf(becomes, sizeof becomes, "\"%s\" becomes the tokens %s instead of %s", d.text,
                 d.ids[1], d.ids[0]);
    if (!*d.key)
        return status_fail(why, STATUS_FORMAT,
                           "%s: %s as with %s; only models that read texts alike can be compared",
                           path, becomes, base_path);
    return status_fail(why, STATUS_FORMAT,
                       "%s: key %s is %s where %s has %s%s%s; only models that read texts alike "
                       "can be compared",
                       path, d.key, d.values[1], base_path, d.values[0], *becomes ? ", so " : "",
                       becomes);
}

/** What both must agree on beside the number of their tokens, of which n are common. */
static enum status check_common(const struct model *base, const struct model *candidate, size_t n,
                                struct status_why *why)
{
    const struct model_tokenizer *p = model_tokenizer(base), *q = model_tokenizer(candidate);
    const char *base_path = gguf_path(model_file(base));
    const char *path = gguf_path(model_file(candidate));
    if (model_adds_bos(p) != model_adds_bos(q))
        return status_fail(why, STATUS_FORMAT,
                           "%s: texts begin %s BOS, those of %s %s it; only models that agree can "
                           "be compared",
                           path, model_adds_bos(q) ? "with" : "without", base_path,
                           model_adds_bos(p) ? "with" : "without");
    if (model_adds_bos(p) && model_token_bos(p) != model_token_bos(q))
        return status_fail(why, STATUS_FORMAT,
                           "%s: BOS is token %" PRId32 ", that of %s is %" PRId32
                           "; only models that agree can be compared",
                           path, model_token_bos(q), base_path, model_token_bos(p));
    enum status status = check_texts(base, candidate, n, why);
    return status ? status : check_reading(base, candidate, why);
}

enum status eval_check_same_vocab(const struct model *base, const struct model *candidate,
                                  struct status_why *why)
{
    size_t n = model_hparams(base)->n_vocab, n_candidate = model_hparams(candidate)->n_vocab;
    if (n != n_candidate)
        return status_fail(why, STATUS_FORMAT,
                           "%s: a vocabulary of %zu tokens where %s has %zu; only models of the "
                           "same vocabulary can be compared",
                           gguf_path(model_file(candidate)), n_candidate,
                           gguf_path(model_file(base)), n);
    return check_common(base, candidate, n, why);
}

enum status eval_check_further_tokens(const struct model *model, size_t first, const char *base,
                                      struct status_why *why)
{
    const struct model_tokenizer *t = model_tokenizer(model);
    for (size_t i = first; i < model_n_vocab(t); i++) {
        enum model_token_type type = model_token_type(t, (int32_t)i);
        struct base_quoted quoted;
        if ((type != MODEL_TOKEN_NORMAL && type != MODEL_TOKEN_BYTE) ||
            model_token_is_filler(t, (int32_t)i))
            continue;
        return status_fail(why, STATUS_FORMAT,
                           "%s: a vocabulary of %zu tokens where %s has %zu, and token %zu, %s, is "
                           "of plain text; only models of the same vocabulary, or with more tokens "
                           "that no text becomes, can be compared",
                           gguf_path(model_file(model)), model_n_vocab(t), base, first, i,
                           base_quote(&quoted, model_token_text(t, (int32_t)i)));
    }
    return STATUS_OK;
}

enum status eval_check_common_vocab(size_t *n_common, const struct model *base,
                                    const struct model *candidate, struct status_why *why)
{
    size_t n = model_hparams(base)->n_vocab, n_candidate = model_hparams(candidate)->n_vocab;
    const struct model *larger = n < n_candidate ? candidate : base;
    const struct model *smaller = n < n_candidate ? base : candidate;
    *n_common = base_min(n, n_candidate);
    enum status status = check_common(base, candidate, *n_common, why);
    if (status || n == n_candidate)
        return status;
    return eval_check_further_tokens(larger, *n_common, gguf_path(model_file(smaller)), why);
}
