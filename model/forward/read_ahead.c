#include "model/forward/read_ahead.h"

#include "gguf/map.h"

static void read_weight(void *user, const struct kern_weight *weight, double share)
{
    (void)user;
    size_t n_bytes =
        weight->col_step ? weight->n_cols * weight->col_step : weight->n_rows * weight->row_bytes;
    if (!weight->data || share != 1)
        return;
    gguf_map_read_ahead(weight->data, n_bytes);
    if (!weight->scales.data)
        return;
    const uint8_t *first = gguf_scales_row(&weight->scales, 0);
    const uint8_t *last = gguf_scales_row(&weight->scales, weight->n_rows - 1);
    gguf_map_read_ahead(first, (size_t)(last - first) + gguf_scales_row_bytes(&weight->scales));
}

void model_read_ahead(const struct model *m, size_t i)
{
    if (i < model_hparams(m)->n_layers) {
        model_layer_walk(m, i, read_weight, NULL);
        return;
    }
    read_weight(NULL, &model_output_norm(m)->gain, 1);
    read_weight(NULL, model_head(m), 1);
}

void model_read_ahead_expert(const struct model_ffn *expert)
{
    read_weight(NULL, &expert->gate.weight, 1);
    read_weight(NULL, &expert->up.weight, 1);
    read_weight(NULL, &expert->down.weight, 1);
}

void model_read_ahead_row(const struct kern_weight *table, size_t row)
{
    gguf_map_read_ahead((const uint8_t *)table->data + row * table->row_bytes, table->row_bytes);
}
