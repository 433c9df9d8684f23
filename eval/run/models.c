/* What a run knows of its models. */
#include "eval/run/run.h"
#include "model/swap.h"

size_t eval_models_n_workers(const struct eval_models *models)
{
    return models->n_backends + (models->crew ? models->crew->n : 0);
}

size_t eval_models_row_bytes(const struct eval_models *models)
{
    size_t n = model_residual_width(model_hparams(models->model));
    for (size_t i = 0; i < models->n_candidates; i++)
        n += model_residual_width(model_hparams(models->candidates[i]));
    return n * sizeof(float);
}

size_t eval_models_n_heads(const struct eval_models *models)
{
    return (models->base ? 2 : 1) + models->n_candidates;
}

enum status eval_models_check_unchanged(const struct eval_models *models, struct status_why *why)
{
    const struct eval_row_source *base = models->base;
    enum status status = model_check_unchanged(models->model, why);
    for (size_t i = 0; i < models->n_candidates && !status; i++)
        status = model_check_unchanged(models->candidates[i], why);
    for (size_t i = 0; models->streams && i < models->streams->n_files && !status; i++)
        status = gguf_check_unchanged(models->streams->files[i], why);
    return status || !base || !base->unchanged ? status : base->unchanged(base->user, why);
}
