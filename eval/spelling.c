#include "eval/spelling.h"

#include <stdlib.h>

#include "eval/escape.h"

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
    s->n_escaped = eval_token_escape(s->escaped, 4 * s->capacity, s->bytes, n);
    s->escaped[s->n_escaped] = '\0';
    return STATUS_OK;
}

void eval_spelling_free(struct eval_spelling *s)
{
    free(s->bytes);
    free(s->escaped);
    *s = (struct eval_spelling){0};
}
