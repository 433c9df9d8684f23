#include "model/tokenizer/run.h"

#include <stdlib.h>

#include "base/text/utf8.h"

enum status model_tokens_add(struct model_tokens *tokens, int32_t id, struct status_why *why)
{
    if (base_array_reserve(tokens->ids, tokens->capacity, tokens->n + 1, "tokens", why))
        return STATUS_MEMORY;
    tokens->ids[tokens->n++] = id;
    return STATUS_OK;
}

enum status model_tok_emit(struct model_tok_run *run, int32_t id)
{
    return model_tokens_add(run->out, id, run->why);
}

enum status model_tok_emit_all(struct model_tok_run *run, const int32_t *ids, size_t n)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < n && !status; i++)
        status = model_tok_emit(run, ids[i]);
    return status;
}

enum status model_tok_repair(struct model_tok_run *run, struct base_buffer *b, const char **text,
                             size_t *n_bytes)
{
    if (base_utf8_first_bad(*text, *n_bytes) == *n_bytes)
        return STATUS_OK;
    enum status status = model_tok_reserve(run, b, base_utf8_repair(*text, *n_bytes, NULL));
    if (status)
        return status;
    *n_bytes = base_utf8_repair(*text, *n_bytes, b->data);
    *text = b->data;
    return STATUS_OK;
}

void model_tok_run_free(struct model_tok_run *run)
{
    model_tok_cache_free(&run->cache);
    model_merge_free(&run->merge);
    model_regex_run_free(&run->regex);
    base_buffer_free(&run->text);
    base_buffer_free(&run->word);
    free(run->slots);
}
