#include "eval/units/texts.h"

#include <string.h>

#include "base/array.h"

enum status eval_join(struct eval_joined *joined, const struct base_string *texts, size_t n,
                      struct status_why *why)
{
    size_t n_bytes = 0;
    for (size_t i = 0; i < n; i++)
        n_bytes += texts[i].n_bytes;
    char *grown = base_array_grow(joined->bytes, &joined->capacity, n_bytes + 1, 1);
    if (!grown)
        return status_fail(why, STATUS_MEMORY, "no memory for a text of %zu bytes", n_bytes);
    joined->bytes = grown;
    joined->n_bytes = 0;
    for (size_t i = 0; i < n; i++) {
        if (texts[i].n_bytes)
            memcpy(grown + joined->n_bytes, texts[i].data, texts[i].n_bytes);
        joined->n_bytes += texts[i].n_bytes;
    }
    return STATUS_OK;
}

enum status eval_tokenize(const struct eval_tokenizing *how, int32_t front, struct base_string text,
                          struct model_tokens *out, struct status_why *why)
{
    int32_t *ids = base_array_grow(out->ids, &out->capacity, 1, sizeof *ids);
    if (!ids)
        return status_fail(why, STATUS_MEMORY, "no memory for the tokens of a text");
    out->ids = ids;
    out->n = 0;
    if (front >= 0)
        ids[out->n++] = front;
    return model_tokenize(how->tokenizer, text.data, text.n_bytes, how->parse_special, out, why);
}
