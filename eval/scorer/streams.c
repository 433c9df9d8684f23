#include "eval/scorer/streams.h"

enum status eval_stream_layers(const struct eval_stream_source *source, const struct model *m,
                               struct model_layer_range *out, struct status_why *why)
{
    *out = (struct model_layer_range){0, model_hparams(m)->n_layers};
    return source && source->layers ? source->layers(source->user, m, out, why) : STATUS_OK;
}

bool eval_stream_scores(const struct eval_stream_source *source, const struct model *m)
{
    struct model_layer_range layers;
    return eval_stream_layers(source, m, &layers, NULL) || layers.to == model_hparams(m)->n_layers;
}
