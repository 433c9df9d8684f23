#include "eval/run/cost.h"

static double product(const struct kern_weight *weight)
{
    return weight->data ? 2.0 * (double)weight->n_rows * (double)weight->n_cols : 0;
}

double eval_cost_forward(const struct model *model, size_t n_tokens)
{
    const struct model_hparams *h = model_hparams(model);
    double n = (double)n_tokens, total = 0;
    for (uint32_t i = 0; i < h->n_layers; i++) {
        const struct model_layer *layer = model_layer(model, i);
        const struct model_ffn *ffn = &layer->ffn[0];
        double n_ffn = h->n_experts ? (double)h->n_experts_used : 1;
        double per_token = product(&layer->q) + product(&layer->k) + product(&layer->v) +
                           product(&layer->output) + product(&layer->router) +
                           n_ffn * (product(&ffn->gate) + product(&ffn->up) + product(&ffn->down));
        double per_pair = 4.0 * (double)h->n_heads[i] * (double)h->head_size;
        total += n * per_token + n * (n + 1) / 2 * per_pair;
    }
    return total;
}

double eval_cost_head(const struct model *model, size_t n_rows)
{
    return (double)n_rows * product(model_head(model));
}
