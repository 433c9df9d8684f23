#include "eval/scorer/cost.h"

#include "base/arithmetic.h"
#include "model/forward/forward.h"

static double product(const struct kern_weight *weight)
{
    return weight->data ? 2.0 * (double)weight->n_rows * (double)weight->n_cols : 0;
}

static void add_product(void *user, const struct kern_weight *weight, double share)
{
    *(double *)user += share * product(weight);
}

static struct eval_cost_span *span_of(struct eval_cost *cost, size_t window, size_t chunk)
{
    size_t i = 0;
    while (i < cost->n_spans && (cost->spans[i].window != window || cost->spans[i].chunk != chunk))
        i++;
    if (i == cost->n_spans && i < EVAL_COST_SPANS)
        cost->spans[cost->n_spans++] = (struct eval_cost_span){window, chunk, 0};
    return &cost->spans[base_min(i, EVAL_COST_SPANS - 1)];
}

/** Numbers that a query is multiplied by for each key that it sees: key and value. */
static double pair_width(const struct model_hparams *h, size_t i)
{
    const struct model_layer_shape *layer = &h->layers[i];
    struct model_kv_widths row = model_kv_widths(h, i);
    if (model_keys_are_compressed(h, i))
        return (double)(row.k + row.v); /* all heads have one */
    return (double)layer->key_size + layer->value_size;
}

void eval_cost_add(struct eval_cost *cost, const struct model *model)
{
    const struct model_hparams *h = model_hparams(model);
    for (uint32_t i = 0; i < h->n_layers + h->n_bound; i++) {
        const struct model_layer_shape *layer = &h->layers[i];
        model_layer_walk(model, i, add_product, &cost->token);
        if (model_mixer_has_keys(layer->mixer))
            span_of(cost, layer->window, layer->chunk)->pair +=
                2.0 * layer->n_heads * pair_width(h, i);
    }
}

static double triangle(size_t n)
{
    return (double)n * ((double)n + 1) / 2;
}

/** Queries and the keys that they see. A window is no longer than a chunk where both are. */
static double n_pairs(const struct eval_cost_span *span, size_t n)
{
    if (span->window && span->window < n)
        return triangle(span->window) + (double)(n - span->window) * (double)span->window;
    if (span->chunk)
        return (double)(n / span->chunk) * triangle(span->chunk) + triangle(n % span->chunk);
    return triangle(n);
}

double eval_cost_segment(const struct eval_cost *cost, size_t n_tokens)
{
    double total = (double)n_tokens * cost->token;
    for (size_t i = 0; i < cost->n_spans; i++)
        total += cost->spans[i].pair * n_pairs(&cost->spans[i], n_tokens);
    return total;
}

double eval_cost_forward(const struct model *model, size_t n_tokens)
{
    struct eval_cost cost = {0};
    eval_cost_add(&cost, model);
    return eval_cost_segment(&cost, n_tokens);
}

double eval_cost_head(const struct model *model, size_t n_rows)
{
    return (double)n_rows * product(model_head(model));
}
