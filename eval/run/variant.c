#include "eval/run/variant.h"

enum status eval_variant_enter(struct model *m, const struct eval_variant *from,
                               const struct eval_variant *to, struct status_why *why)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; from && i < from->n && !status; i++)
        status = model_swap(m, from->swaps[i].name, NULL, NULL, why);
    for (size_t i = 0; to && i < to->n && !status; i++) {
        const struct eval_swap *s = &to->swaps[i];
        status = model_swap(m, s->name, s->file, s->from, why);
        if (status)
            status_context(why, "tensor '%s' of %s cannot be used in place of that of %s", s->name,
                           gguf_path(s->file), gguf_path(model_file(m)));
    }
    return status;
}

enum status eval_variants_share(struct model **out, const struct model *m,
                                const struct eval_variants *variants, const struct gguf_file *file,
                                struct status_why *why)
{
    enum status status = model_share(out, m, why);
    for (size_t v = 0; v < variants->n && !status; v++)
        for (size_t i = 0; i < variants->items[v].n && !status; i++) {
            const struct eval_swap *s = &variants->items[v].swaps[i];
            if (s->file == file)
                status = model_swap(*out, s->name, s->file, s->from, why);
        }
    return status;
}
