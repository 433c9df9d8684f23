/* The block that predicts the token after the next: what it has beside a layer's tensors. */
#include "model/arch.h"
#include "model/bind/bind.h"
#include "model/state.h"

/** A table of its own, in place of the model's: "nextn.embed_tokens", "nextn.shared_head_head". */
static void bind_table(struct model *m, size_t i, const char *name, struct model_product *table)
{
    if (!model_has_projection(m, i, name))
        return;
    float scale = table->weight.scale;
    model_bind_product(m, i, name, m->hparams.n_vocab, m->hparams.n_embd, table);
    table->weight.scale *= scale;
    table->bias.scale *= scale;
}

/** The norm before the head, by either of its names; else the model's. */
static void bind_last_norm(struct model *m, size_t i)
{
    static const char first[] = "nextn.shared_head_norm", second[] = "layer_output_norm";
    bool has_first = model_has_projection(m, i, first);
    m->nextn.norm = m->output_norm;
    if (!has_first && !model_has_projection(m, i, second))
        return;
    const char *name = has_first ? first : second;
    model_bind_norm(m, i, name, m->hparams.n_embd, &m->nextn.norm);
    if (!has_first || !model_has_projection(m, i, second))
        return;
    model_bind_unused(m, i, second);
    model_remark(&m->remarks, "block %zu has two norms before the head: %s is used, %s is not", i,
                 first, second);
}

void model_bind_nextn(struct model *m, size_t i)
{
    struct model_nextn *x = &m->nextn;
    size_t n = m->hparams.n_embd;
    struct model_product embedding = {.weight = m->embedding};
    x->head = m->head;
    model_bind_product(m, i, "nextn.eh_proj", n, 2 * n, &x->join);
    model_bind_norm(m, i, "nextn.enorm", n, &x->token_norm);
    model_bind_norm(m, i, "nextn.hnorm", n, &x->hidden_norm);
    bind_last_norm(m, i);
    bind_table(m, i, "nextn.embed_tokens", &embedding);
    bind_table(m, i, "nextn.shared_head_head", &x->head);
    x->embedding = embedding.weight;
}
