#include "eval/identity.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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
                              model_adds_bos(tokenizer) ? model_token_bos(tokenizer) : -1, why);
}

enum status eval_vocab_id_with(char hex[BASE_HEX], const struct model *model, int32_t bos,
                               struct status_why *why)
{
    const struct model_tokenizer *tokenizer = model_tokenizer(model);
    const uint32_t adds_bos = bos >= 0;
    size_t n = model_n_vocab(tokenizer);
    struct base_digest *digest = base_digest_open();
    add_u64(digest, n);
    add_u64(digest, model_hparams(model)->n_vocab);
    base_digest_add(digest, &adds_bos, sizeof adds_bos);
    base_digest_add(digest, &bos, sizeof bos);
    for (size_t i = 0; i < n; i++) {
        struct base_string text = model_token_text(tokenizer, (int32_t)i);
        add_u64(digest, text.n_bytes);
        base_digest_add(digest, text.data, text.n_bytes);
    }
    return base_digest_close(digest, hex, why);
}

static enum status check_texts(const struct model *base, const struct model *candidate,
                               struct status_why *why)
{
    const struct model_tokenizer *p = model_tokenizer(base), *q = model_tokenizer(candidate);
    for (size_t i = 0; i < model_n_vocab(p); i++) {
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

enum status eval_check_same_vocab(const struct model *base, const struct model *candidate,
                                  struct status_why *why)
{
    const struct model_tokenizer *p = model_tokenizer(base), *q = model_tokenizer(candidate);
    const char *base_path = gguf_path(model_file(base));
    const char *path = gguf_path(model_file(candidate));
    if (model_n_vocab(p) != model_n_vocab(q))
        return status_fail(why, STATUS_FORMAT,
                           "%s: a vocabulary of %zu tokens where %s has %zu; only models of the "
                           "same vocabulary can be compared",
                           path, model_n_vocab(q), base_path, model_n_vocab(p));
    if (model_hparams(base)->n_vocab != model_hparams(candidate)->n_vocab)
        return status_fail(why, STATUS_FORMAT,
                           "%s: a head of %" PRIu32 " rows where %s has %" PRIu32
                           "; only models of the same vocabulary can be compared",
                           path, model_hparams(candidate)->n_vocab, base_path,
                           model_hparams(base)->n_vocab);
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
    enum status status = check_texts(base, candidate, why);
    return status ? status : check_reading(base, candidate, why);
}
