#include "eval/input/spelling.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/text/escape.h"

enum status eval_spell(struct eval_spelling *s, const struct model_tokenizer *tokenizer, int32_t id,
                       struct status_why *why)
{
    size_t n = model_token_bytes(tokenizer, id, s->bytes, s->capacity);
    if (n > s->capacity || !s->escaped) {
        eval_spelling_free(s);
        s->bytes = malloc(n + 1);
        s->escaped = malloc(4 * n + 1);
        if (!s->bytes || !s->escaped)
            return status_fail(why, STATUS_MEMORY, "no memory for a token of %zu bytes", n);
        s->capacity = n;
        model_token_bytes(tokenizer, id, s->bytes, s->capacity);
    }
    s->n_escaped = base_escape(s->escaped, 4 * s->capacity, s->bytes, n);
    s->escaped[s->n_escaped] = '\0';
    return STATUS_OK;
}

enum status eval_spell_all(char **out, const struct model_tokenizer *tokenizer, const int32_t *ids,
                           size_t n, struct status_why *why)
{
    struct eval_spelling spelling = {0};
    struct base_buffer text = {0};
    enum status status = STATUS_OK;
    for (size_t i = 0; i < n && !status; i++) {
        status = eval_spell(&spelling, tokenizer, ids[i], why);
        if (!status)
            base_buffer_add(&text, spelling.escaped, spelling.n_escaped);
    }
    eval_spelling_free(&spelling);
    if (!status)
        status = base_buffer_check(&text, "a text", why);
    *out = status ? NULL : base_buffer_take(&text);
    base_buffer_free(&text);
    return status;
}

void eval_spelling_free(struct eval_spelling *s)
{
    free(s->bytes);
    free(s->escaped);
    *s = (struct eval_spelling){0};
}
