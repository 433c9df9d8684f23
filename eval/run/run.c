#include "eval/run/run.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/arithmetic.h"
#include "base/clock.h"
#include "eval/cluster/remote.h"
#include "eval/run/batch_size.h"
#include "eval/run/worker.h"
#include "eval/scorer/row_flow.h"
#include "model/swap.h"

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
    for (size_t i = 0; models->variants && i < models->variants->n_files && !status; i++)
        status = gguf_check_unchanged(models->variants->files[i], why);
    return status || !base || !base->unchanged ? status : base->unchanged(base->user, why);
}

enum status eval_check_ids(const struct model *model, const int32_t *ids, size_t n,
                           struct status_why *why)
{
    size_t n_vocab = model_hparams(model)->n_vocab;
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || (size_t)ids[i] >= n_vocab)
            return status_fail(why, STATUS_FORMAT,
                               "%s: token %zu of the text has the id %d; expected ids below %zu, "
                               "the rows of the embedding",
                               gguf_path(model_file(model)), i, ids[i], n_vocab);
    return STATUS_OK;
}

/** Read the next unit's entry. found: it is there, and what belongs to it. */
static enum status restore(struct eval_units *units, struct eval_journal *journal, bool *found,
                           struct status_why *why)
{
    size_t n = units->kind->n_values(units, units->n_finished);
    double *values = malloc((n + 1) * sizeof *values);
    if (!values)
        return status_fail(why, STATUS_MEMORY, "no memory for a journal entry of %zu numbers", n);
    bool read = false;
    enum status status = eval_journal_read(journal, values, n, &read, why);
    *found = read;
    if (!status && read)
        status = units->kind->restore(units, units->n_finished, values, found, why);
    if (read && (status || !*found))
        eval_journal_unread(journal);
    free(values);
    return status;
}

enum status eval_run_resume(struct eval_units *units, struct eval_journal *journal,
                            struct status_why *why)
{
    enum status status = STATUS_OK;
    bool found = journal != NULL;
    while (found && units->n_finished < units->n && !status) {
        status = restore(units, journal, &found, why);
        if (!status && found)
            units->n_resumed = ++units->n_finished;
    }
    return status;
}

static void measure(struct eval_units *units)
{
    units->most = (struct eval_size){0};
    units->n_tokens = 0;
    units->cost = 0;
    struct eval_size *most = &units->most;
    for (size_t i = 0; i < units->n_items;) {
        struct eval_size n;
        units->cost += eval_batch_cost(units, i, eval_batch_end(units, i, &n));
        i = eval_batch_end(units, i, &n);
        most->n_tokens = base_max(most->n_tokens, n.n_tokens);
        most->n_segments = base_max(most->n_segments, n.n_segments);
        most->n_rows = base_max(most->n_rows, n.n_rows);
        most->n_targets = base_max(most->n_targets, n.n_targets);
        most->longest = base_max(most->longest, n.longest);
        units->n_tokens += n.n_tokens;
    }
}

enum status eval_run_prepare(struct eval_units *units, const struct eval_models *models,
                             size_t batch_tokens, struct status_why *why)
{
    enum status status = STATUS_OK;
    /* Tokens of a batch are counted in uint32_t. */
    units->batch_tokens = base_min(batch_tokens, UINT32_MAX);
    units->boundary = model_rope_boundary(models->model);
    if (batch_tokens == 0)
        status = eval_batch_choose(units, models, &units->batch_tokens, why);
    if (!status)
        status = units->kind->make_items(units, why);
    if (!status)
        measure(units);
    return status;
}

/** Another file than the model's. */
static void add_file(struct eval_memory *m, const struct gguf_file *of_model,
                     const struct gguf_file *other)
{
    if (other == of_model)
        return;
    m->weights += eval_memory_mapped(other);
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
    struct eval_memory m = {.weights = eval_memory_mapped(file) + swapped_bytes(models->model),
                            .present = eval_memory_present(file)};
    const struct eval_variants *variants = models->variants;
    for (size_t i = 0; i < models->n_candidates; i++) {
        add_file(&m, file, model_file(models->candidates[i]));
        m.weights += swapped_bytes(models->candidates[i]);
    }
    for (size_t i = 0; variants && i < variants->n_files; i++)
        add_file(&m, file, variants->files[i]);
    for (size_t i = 0; i < models->n_backends && units->n_items; i++) {
        m.scorer += scorer_bytes(models, models->backends[i], scorer);
        m.scorer += EVAL_MEMORY_THREAD * kern_describe(models->backends[i]).n_threads;
        m.scores += eval_worker_bytes(units, eval_models_n_heads(models));
    }
    for (size_t i = 0; models->caches && i <= models->n_candidates; i++)
        m.scores += eval_cache_bytes(models->caches[i]);
    size_t n_links = options->team && units->n_items ? options->team->n_links : 0;
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

/** eval_check_same_vocab compares models with each other; here are reference rows and ids. */
static enum status check_models(const struct eval_units *units, const struct eval_models *models,
                                struct status_why *why)
{
    size_t n_vocab = model_head(models->model)->n_rows;
    if (models->base && models->base->n_vocab != n_vocab)
        return status_fail(why, STATUS_USAGE,
                           "the base has a vocabulary of %zu tokens, that of %s has %zu",
                           models->base->n_vocab, gguf_path(model_file(models->model)), n_vocab);
    enum status status = units->kind->check_ids(units, models->model, why);
    for (size_t i = 0; i < models->n_candidates && !status; i++)
        status = units->kind->check_ids(units, models->candidates[i], why);
    return status;
}

/** The first worker in this thread, each of the others in its own. */
static enum status work(struct eval_dispatch *d, struct eval_worker *workers,
                        struct status_why *why)
{
    size_t n_threads = 1;
    while (n_threads < d->n_workers && pthread_create(&workers[n_threads].thread, NULL,
                                                      eval_worker_work, &workers[n_threads]) == 0)
        n_threads++;
    if (n_threads < d->n_workers) {
        struct status_why no_thread = {
            "no thread can be started for each of the devices and ranks"};
        eval_dispatch_fail(d, STATUS_MEMORY, &no_thread);
    }
    eval_worker_work(&workers[0]);
    for (size_t i = 1; i < n_threads; i++)
        pthread_join(workers[i].thread, NULL);
    return d->status ? status_fail(why, d->status, "%s", d->why.text) : STATUS_OK;
}

static enum status run(struct eval_dispatch *d, struct eval_worker *workers, struct status_why *why)
{
    enum status status = check_models(d->units, d->models, why);
    const struct eval_team *team = d->options->team;
    size_t n_own = d->models->n_backends, n_workers = d->units->n_items ? d->n_workers : 0;
    for (size_t i = n_own; i < n_workers && !status; i++) { /* they open while this rank does */
        status = eval_worker_open_remote(&workers[i], d, &team->links[i - n_own], why);
        if (!status)
            status = eval_remote_start(workers[i].link, d->units, d->models, why);
    }
    for (size_t i = 0; i < n_own && i < n_workers && !status; i++)
        status = eval_worker_open(&workers[i], d, i, why);
    if (status)
        return status;
    for (size_t i = 0; i < n_workers; i++)
        eval_worker_share_cancel(&workers[i]);
    double now = base_clock_seconds();
    d->stats->seconds_to_open = now - d->started;
    d->started = now;
    status = eval_dispatch_report(d, why);
    return status || !n_workers ? status : work(d, workers, why);
}

enum status eval_run(struct eval_units *units, const struct eval_models *models,
                     const struct eval_run_options *options, struct eval_run_stats *stats,
                     struct status_why *why)
{
    assert(units->batch_tokens > 0 && models->n_backends > 0);
    struct eval_run_stats own;
    struct eval_dispatch d = {
        .units = units, .models = models, .options = options, .stats = stats ? stats : &own};
    *d.stats = (struct eval_run_stats){.n_resumed = units->n_resumed,
                                       .max_batch_tokens = units->most.n_tokens};
    size_t n_workers = models->n_backends + (options->team ? options->team->n_links : 0);
    struct eval_worker *workers = calloc(n_workers, sizeof *workers);
    d.workers = workers;
    d.n_workers = n_workers;
    enum status status = eval_dispatch_open(&d, why);
    if (!workers && !status)
        status = status_fail(why, STATUS_MEMORY, "no memory for %zu devices", n_workers);
    if (!status)
        status = run(&d, workers, why);
    if (status && status != STATUS_CANCELLED) { /* a file that changed may be why */
        struct status_why changed;
        if (eval_models_check_unchanged(models, &changed) == STATUS_CHANGED)
            status = status_fail(why, STATUS_CHANGED, "%s", changed.text);
    }
    if (options->journal) { /* whatever became of the run */
        enum status synced = eval_journal_sync(options->journal, status ? NULL : why);
        status = status ? status : synced;
    }
    for (size_t i = 0; workers && i < n_workers; i++)
        eval_worker_close(&workers[i]);
    if (options->team)
        eval_team_end(options->team, status);
    free(workers);
    d.stats->seconds = base_clock_seconds() - d.started;
    eval_dispatch_close(&d);
    return status;
}
