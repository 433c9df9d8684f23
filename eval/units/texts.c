#include "eval/units/texts.h"

#include <string.h>

#include "base/array.h"
#include "base/buffer.h"

enum status eval_join(struct base_buffer *joined, const struct base_string *texts, size_t n,
                      struct status_why *why)
{
    joined->n = 0;
    for (size_t i = 0; i < n; i++)
        base_buffer_add(joined, texts[i].data, texts[i].n_bytes);
    return base_buffer_check(joined, "a text", why);
}

enum status eval_tokenize(const struct eval_tokenizing *how, int32_t front, struct base_string text,
                          struct model_tokens *out, struct status_why *why)
{
    if (base_array_reserve(out->ids, out->capacity, 1, "tokens", why)) /* never NULL */
        return STATUS_MEMORY;
    out->n = 0;
    if (front >= 0)
        out->ids[out->n++] = front;
    enum status status =
        model_tokenize(how->tokenizer, text.data, text.n_bytes, how->parse_special, out, why);
    bool brings_it = front >= 0 && front == model_token_bos(how->tokenizer) && how->parse_special &&
                     out->n > 1 && out->ids[1] == front;
    if (!status && brings_it)
        memmove(out->ids, out->ids + 1, --out->n * sizeof *out->ids);
    return status;
}
