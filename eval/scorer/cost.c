#include "eval/scorer/cost.h"

static double product(const struct kern_weight *weight)
{
    return weight->data ? 2.0 * (double)weight->n_rows * (double)weight->n_cols : 0;
}

static void add_product(void *user, const struct kern_weight *weight, double share)
{
    *(double *)user += share * product(weight);
}

double eval_cost_forward(const struct model *model, size_t n_tokens)
{
    const struct model_hparams *h = model_hparams(model);
    double n = (double)n_tokens, total = 0;
    for (uint32_t i = 0; i < h->n_layers; i++) {
        const struct model_layer_shape *layer = &h->layers[i];
        double per_token = 0, per_pair = 0;
        model_layer_walk(model, i, add_product, &per_token);
        if (model_mixer_has_keys(layer->mixer))
            per_pair = 2.0 * layer->n_heads * ((double)layer->key_size + layer->value_size);
        total += n * per_token + n * (n + 1) / 2 * per_pair;
    }
    return total;
}

double eval_cost_head(const struct model *model, size_t n_rows)
{
    return (double)n_rows * product(model_head(model));
}
