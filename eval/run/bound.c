/* What a run will take of memory. */
#include <math.h>
#include <unistd.h>

#include "base/system/system.h"
#include "eval/run/local.h"
#include "kernels/backend.h"
#include "model/swap.h"

/** What is not read of a table of which tokens name rows: pages that no row touches. A row touches
 * two that are not wholly its own. */
static double unread_of(const struct model_in_force *t, uint64_t n_rows, double n_bytes,
                        size_t n_tokens)
{
    double row = n_bytes / (double)n_rows + 2 * (double)sysconf(_SC_PAGESIZE);
    double read = (double)t->rows_of_token * (double)n_tokens * row;
    return t->rows_of_token > 0 ? fmax(0, n_bytes - read) : 0;
}

/** What is not read of a file that has the model's tensors. */
static double unread_bytes(const struct model *m, const struct gguf_file *file, size_t n_tokens)
{
    double sum = 0;
    for (size_t i = 0; i < gguf_n_tensors(model_file(m)); i++) {
        struct model_in_force t = model_in_force(m, i);
        const struct gguf_tensor *table =
            t.rows_of_token > 0 ? gguf_tensor_find(file, gguf_tensor_at(model_file(m), i)->name)
                                : NULL;
        sum += table ? unread_of(&t, table->n_rows, (double)table->n_bytes, n_tokens) : 0;
    }
    return sum;
}

/** What is read of a model's file: all, or what is here already and the layers evaluated here. */
static double file_bytes(const struct eval_models *models, const struct model *model,
                         const struct eval_units *units)
{
    struct model_layer_range layers;
    double all = eval_memory_mapped(model_file(model)) -
                 unread_bytes(model, model_file(model), units->n_tokens);
    if (!models->streams || !models->streams->layers ||
        eval_stream_layers(models->streams, model, &layers, NULL))
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

/** What it has from files other than its own. */
static double swapped_bytes(const struct model *m, size_t n_tokens)
{
    double sum = 0;
    for (size_t i = 0; i < gguf_n_tensors(model_file(m)); i++) {
        struct model_in_force t = model_in_force(m, i);
        uint64_t n_rows = gguf_tensor_at(model_file(m), i)->n_rows;
        if (t.swapped)
            sum += (double)(t.n_bytes + t.n_scale_bytes) -
                   unread_of(&t, n_rows, (double)t.n_bytes, n_tokens);
    }
    return sum;
}

/** What the workers and what enters their layers take, beside what is the scorer's. */
static void add_workers(struct eval_memory *m, const struct eval_units *units,
                        const struct eval_models *models, const struct eval_run_options *options)
{
    const struct eval_stream_source *streams = models->streams;
    const struct eval_crew *crew = models->crew;
    double arrays = eval_worker_bytes(units, eval_models_n_heads(models));
    for (size_t i = 0; i < models->n_backends; i++) {
        m->scorer += eval_worker_local.bytes(units, models, options, i);
        m->scores += arrays;
    }
    for (size_t i = 0; crew && i < crew->n; i++)
        m->scores += crew->kind->bytes(units, models, options, i) + arrays;
    if (streams && streams->bytes)
        m->scores += streams->bytes(streams->user, units->most.n_tokens);
}

struct eval_memory eval_run_memory(const struct eval_units *units, const struct eval_models *models,
                                   const struct eval_run_options *options)
{
    const struct gguf_file *file = model_file(models->model);
    struct eval_memory m = {.weights = file_bytes(models, models->model, units) +
                                       swapped_bytes(models->model, units->n_tokens),
                            .present = eval_memory_present(file)};
    const struct eval_stream_source *streams = models->streams;
    for (size_t i = 0; i < models->n_candidates; i++) {
        const struct model *candidate = models->candidates[i];
        add_file(&m, file, model_file(candidate), file_bytes(models, candidate, units));
        m.weights += swapped_bytes(candidate, units->n_tokens);
    }
    for (size_t i = 0; streams && i < streams->n_files; i++)
        add_file(&m, file, streams->files[i],
                 eval_memory_mapped(streams->files[i]) -
                     unread_bytes(models->model, streams->files[i], units->n_tokens));
    if (units->n_items)
        add_workers(&m, units, models, options);
    m.on_device = kern_describe(models->backends[0]).own_memory;
    m.scores += units->kind->n_bytes(units) + EVAL_MEMORY_SMALL_THINGS;
    m.before = base_system_peak();
    m.total = fmax(m.weights + m.present + m.scorer + m.scores, m.before);
    return m;
}
