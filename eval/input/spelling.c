#include "eval/input/spelling.h"

#include <stdlib.h>
#include <string.h>

#include "base/text/escape.h"

static enum status grow(struct eval_spelling *s, size_t n, struct status_why *why)
{
    eval_spelling_free(s);
    s->bytes = malloc(n + 1);
    s->escaped = malloc(4 * n + 1);
    if (!s->bytes || !s->escaped)
        return status_fail(why, STATUS_MEMORY, "no memory for a token of %zu bytes", n);
    s->capacity = n;
    return STATUS_OK;
}

enum status eval_spell(struct eval_spelling *s, const struct model_tokenizer *tokenizer, int32_t id,
                       struct status_why *why)
{
    size_t n = model_token_bytes(tokenizer, id, s->bytes, s->capacity);
    if (n > s->capacity || !s->escaped) {
        enum status status = grow(s, n, why);
        if (status)
            return status;
        model_token_bytes(tokenizer, id, s->bytes, s->capacity);
    }
    s->n_escaped = base_escape(s->escaped, 4 * s->capacity, s->bytes, n);
    s->escaped[s->n_escaped] = '\0';
    return STATUS_OK;
}

/** Put n bytes and a NUL behind the n_text bytes of *text. */
static enum status append(char **text, size_t n_text, const char *bytes, size_t n,
                          struct status_why *why)
{
    char *longer = realloc(*text, n_text + n + 1);
    if (!longer)
        return status_fail(why, STATUS_MEMORY, "no memory for a text of %zu bytes", n_text + n);
    memcpy(longer + n_text, bytes, n);
    longer[n_text + n] = '\0';
    *text = longer;
    return STATUS_OK;
}

enum status eval_spell_all(char **out, const struct model_tokenizer *tokenizer, const int32_t *ids,
                           size_t n, struct status_why *why)
{
    struct eval_spelling spelling = {0};
    size_t n_text = 0;
    *out = NULL;
    enum status status = append(out, 0, "", 0, why);
    for (size_t i = 0; i < n && status == STATUS_OK; i++) {
        status = eval_spell(&spelling, tokenizer, ids[i], why);
        if (status == STATUS_OK)
            status = append(out, n_text, spelling.escaped, spelling.n_escaped, why);
        n_text += spelling.n_escaped;
    }
    eval_spelling_free(&spelling);
    if (status != STATUS_OK) {
        free(*out);
        *out = NULL;
    }
    return status;
}

void eval_spelling_free(struct eval_spelling *s)
{
    free(s->bytes);
    free(s->escaped);
    *s = (struct eval_spelling){0};
}
