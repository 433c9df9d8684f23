/* Tensors that a base has and a candidate has not, or the other way round. */
#include <stdio.h>
#include <string.h>

#include "base/text/printable.h"
#include "base/text/quote.h"
#include "base/text/words.h"
#include "cli/kld/kld_evaluator.h"
#include "model/swap.h"

/** Whether a file has what a tensor of another file belongs to: the matrix of a bias. */
static bool has_its_matrix(const struct gguf_file *file, const struct gguf_tensor *t)
{
    char name[256];
    size_t n = strlen(t->name) - strlen("bias");
    if (n + sizeof "weight" > sizeof name)
        return false;
    memcpy(name, t->name, n);
    memcpy(name + n, "weight", sizeof "weight");
    return gguf_tensor_find(file, name) != NULL;
}

/**
 * Whether a tensor counts that the other file lacks. Matrices are split and joined in several ways,
 * and a model without them is refused; a head that is stored once more changes nothing.
 */
static bool counts(const struct gguf_file *file, const struct gguf_file *other,
                   const struct gguf_tensor *t)
{
    const struct gguf_tensor *embedding = gguf_tensor_find(file, "token_embd.weight");
    if (strcmp(t->name, "output.weight") == 0)
        return embedding && embedding->type == t->type && embedding->n_bytes == t->n_bytes &&
               !gguf_tensor_same(embedding, t);
    if (base_ends_with(t->name, ".bias"))
        return has_its_matrix(other, t);
    return t->n_rows == 1 && !base_ends_with(t->name, "scale");
}

struct lacking {
    const char *first; /* NULL: nothing is lacking */
    size_t n;
};

/** Tensors of a model that count and that another one has not. */
static struct lacking find(const struct model *m, const struct model *other)
{
    const struct gguf_file *file = model_file(m), *others = model_file(other);
    struct lacking l = {NULL, 0};
    for (size_t i = 0; i < gguf_n_tensors(file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(file, i);
        if (gguf_tensor_find(others, t->name) || model_in_force(m, i).unused ||
            !counts(file, others, t))
            continue;
        l.first = l.first ? l.first : t->name;
        l.n++;
    }
    return l;
}

static bool of_one_shape(const struct model *a, const struct model *b)
{
    const struct model_hparams *x = model_hparams(a), *y = model_hparams(b);
    return strcmp(x->architecture, y->architecture) == 0 && x->n_layers == y->n_layers &&
           x->n_embd == y->n_embd;
}

static void remark(struct cli_kld *k, const char *has, const char *lacks, struct lacking l)
{
    char one[96], two[96], more[48] = "";
    struct base_quoted first;
    if (!l.first)
        return;
    base_quote(&first, (struct base_string){l.first, strlen(l.first)});
    if (l.n > 1)
        snprintf(more, sizeof more, " and %zu more such tensors", l.n - 1);
    cli_remark(&k->e,
               "%s has %s%s, %s has not: the divergence is not that of types alone; one of the "
               "two may be converted wrongly",
               base_printable_text(one, sizeof one, base_file_name(has)), first.text, more,
               base_printable_text(two, sizeof two, base_file_name(lacks)));
}

void cli_kld_remark_optional(struct cli_kld *k)
{
    const struct model *base = cli_base_has_rows(&k->base) ? NULL : k->base.model.model;
    for (size_t i = 0; base && i < k->n_candidates; i++) {
        const struct model *m = k->candidates[i].model;
        const char *path = k->candidates[i].path, *base_path = k->settings->base;
        if (m == base || !of_one_shape(base, m))
            continue;
        remark(k, base_path, path, find(base, m));
        remark(k, path, base_path, find(m, base));
    }
}
