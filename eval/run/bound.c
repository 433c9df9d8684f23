/* What a run will take of memory. */
#include <math.h>

#include "eval/cluster/remote.h"
#include "eval/run/worker.h"
#include "eval/scorer/row_flow.h"
#include "kernels/backend.h"
#include "model/swap.h"

/** What is read of a model's file: all, or what is here already and a share of the layers. */
static double file_bytes(const struct eval_models *models, const struct model *model)
{
    struct model_layer_range layers;
    double all = eval_memory_mapped(model_file(model));
    if (!eval_share_splits(&models->share) ||
        eval_share_layers(&models->share, model, &layers, NULL))
        return all;
    return fmin(all, eval_memory_resident(model_file(model)) + model_split_bytes(model, layers));
}

/** Another file than the model's. n_bytes: of it. */
static void add_file(struct eval_memory *m, const struct gguf_file *of_model,
                     const struct gguf_file *other, double n_bytes)
{
    if (other == of_model)
        return;
    m->weights += n_bytes;
    m->present -= eval_memory_resident(other);
}

/** What a scorer takes with the variant that takes the most, and for what enters their layers. */
static double scorer_bytes(const struct eval_models *models, struct kern_backend *backend,
                           struct eval_scorer_options scorer)
{
    double most = eval_scorer_bytes(models->model, backend, &scorer), kept = 0;
    const struct eval_variants *v = models->variants;
    for (size_t i = 0; v && i < v->n_files; i++) {
        struct model *all = NULL;
        const struct model *candidate = models->candidates[0];
        if (!eval_variants_share(&all, candidate, v, v->files[i], NULL)) {
            candidate = all;
            scorer.candidates = &candidate;
            most = fmax(most, eval_scorer_bytes(models->model, backend, &scorer));
        }
        kept = (double)scorer.max_batch * sizeof(float) *
               ((double)model_hparams(models->model)->n_embd + model_hparams(candidate)->n_embd);
        model_close(all);
    }
    return most + kept;
}

/** What it has from files other than its own. */
static double swapped_bytes(const struct model *m)
{
    double sum = 0;
    for (size_t i = 0; i < gguf_n_tensors(model_file(m)); i++) {
        struct model_in_force tensor = model_in_force(m, i);
        sum += tensor.swapped ? (double)tensor.n_bytes : 0;
    }
    return sum;
}

struct eval_memory eval_run_memory(const struct eval_units *units, const struct eval_models *models,
                                   const struct eval_run_options *options)
{
    struct eval_scorer_options scorer = eval_worker_scorer(units, models, options);
    const struct gguf_file *file = model_file(models->model);
    struct eval_memory m = {.weights =
                                file_bytes(models, models->model) + swapped_bytes(models->model),
                            .present = eval_memory_present(file)};
    const struct eval_variants *variants = models->variants;
    for (size_t i = 0; i < models->n_candidates; i++) {
        const struct model *candidate = models->candidates[i];
        add_file(&m, file, model_file(candidate), file_bytes(models, candidate));
        m.weights += swapped_bytes(candidate);
    }
    for (size_t i = 0; variants && i < variants->n_files; i++)
        add_file(&m, file, variants->files[i], eval_memory_mapped(variants->files[i]));
    for (size_t i = 0; i < models->n_backends && units->n_items; i++) {
        m.scorer += scorer_bytes(models, models->backends[i], scorer);
        m.scorer += EVAL_MEMORY_THREAD * kern_describe(models->backends[i]).n_threads;
        m.scores += eval_worker_bytes(units, eval_models_n_heads(models));
    }
    for (size_t i = 0; models->caches && i <= models->n_candidates; i++)
        m.scores += eval_cache_bytes(models->caches[i]);
    size_t n_links = units->n_items ? eval_worker_n_others(models, options->team) : 0;
    if (eval_share_splits(&models->share)) /* a batch on its way here, and who waits for it */
        m.scores +=
            2 * EVAL_MEMORY_THREAD + (double)(eval_models_row_bytes(models) * units->most.n_tokens);
    m.scores += (double)n_links *
                (EVAL_MEMORY_THREAD + eval_worker_bytes(units, eval_models_n_heads(models)));
    if (n_links && models->sink)
        m.scores += EVAL_REMOTE_ROW_BYTES +
                    (double)eval_row_bytes(models->sink->kind, model_head(models->model));
    m.on_device = kern_describe(models->backends[0]).own_memory;
    m.scores += units->kind->n_bytes(units) + EVAL_MEMORY_SMALL_THINGS;
    m.before = eval_memory_peak();
    m.total = fmax(m.weights + m.present + m.scorer + m.scores, m.before);
    return m;
}
