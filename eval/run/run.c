#include "eval/run/run.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "eval/run/memory.h"
#include "eval/run/resume.h"
#include "eval/run/shared.h"

size_t eval_run_batch_tokens(const struct eval_task *task, const struct eval_run_options *options)
{
    return eval_run_largest_batch(task, options) * task->plan->n_inputs;
}

static struct eval_scorer_options scorer_options(const struct eval_task *task,
                                                 const struct eval_run_options *options)
{
    return (struct eval_scorer_options){
        .max_batch = eval_run_batch_tokens(task, options),
        .max_rows = eval_run_largest_batch(task, options) * task->plan->n_scored,
        .max_segment = task->plan->n_inputs,
        .tile_tokens = options->tile_tokens,
        .candidates = task->candidates,
        .n_candidates = task->n_candidates,
        .base = task->base,
        .sink = task->sink,
    };
}

size_t eval_task_n_tables(const struct eval_task *task)
{
    return (task->base ? 2 : 1) + task->n_candidates;
}

struct eval_memory eval_run_memory(const struct eval_task *task,
                                   const struct eval_run_options *options)
{
    const struct eval_plan *plan = task->plan;
    struct eval_scorer_options scorer = scorer_options(task, options);
    const struct gguf_file *file = model_file(task->model);
    struct eval_memory m = {.weights = eval_memory_mapped(file),
                            .present = eval_memory_present(file)};
    for (size_t i = 0; i < task->n_candidates; i++) {
        const struct gguf_file *other = model_file(task->candidates[i]);
        m.weights += eval_memory_mapped(other);
        m.present -= eval_memory_resident(other);
    }
    for (size_t i = 0; i < task->n_backends; i++) {
        m.scorer += eval_scorer_bytes(task->model, task->backends[i], &scorer);
        m.on_device |= kern_describe(task->backends[i]).own_memory;
    }
    m.scores = eval_table_bytes(plan->n_windows, plan->n_scored) +
               (double)(eval_task_n_tables(task) - 1) *
                   eval_table_pair_bytes(plan->n_windows, plan->n_scored) +
               (double)task->n_backends *
                   eval_run_worker_bytes(task, eval_run_largest_batch(task, options)) +
               (double)plan->n_windows + EVAL_MEMORY_SMALL_THINGS;
    m.total = m.weights + m.present + m.scorer + m.scores;
    return m;
}

/** Ids come from a vocabulary that may be longer than the matrices of a broken file. */
static enum status check_ids(const struct eval_task *task, const struct model *model,
                             struct status_why *why)
{
    size_t n_vocab = model_hparams(model)->n_vocab;
    for (size_t i = 0; i < task->stream->n; i++) {
        int32_t id = task->stream->ids[i];
        if (id < 0 || (size_t)id >= n_vocab)
            return status_fail(why, STATUS_FORMAT,
                               "%s: token %zu of the text has the id %d; expected ids below %zu, "
                               "the rows of the embedding",
                               gguf_path(model_file(model)), i, id, n_vocab);
    }
    if (task->plan->bos_use != EVAL_BOS_NONE && (size_t)task->plan->options.bos >= n_vocab)
        return status_fail(why, STATUS_FORMAT, "%s: BOS has the id %d; expected less than %zu",
                           gguf_path(model_file(model)), task->plan->options.bos, n_vocab);
    return STATUS_OK;
}

/** All models as long as each other is what eval_check_same_vocab sees to; base rows are not. */
static enum status check_base(const struct eval_task *task, struct status_why *why)
{
    size_t n_vocab = model_head(task->model)->n_rows;
    if (task->base && task->base->n_vocab != n_vocab)
        return status_fail(why, STATUS_USAGE,
                           "the base has a vocabulary of %zu tokens, that of %s has %zu",
                           task->base->n_vocab, gguf_path(model_file(task->model)), n_vocab);
    return STATUS_OK;
}

static enum status check_task(const struct eval_task *task, struct status_why *why)
{
    enum status status = check_base(task, why);
    if (!status)
        status = check_ids(task, task->model, why);
    for (size_t i = 0; i < task->n_candidates && !status; i++)
        status = check_ids(task, task->candidates[i], why);
    return status;
}

/** Tell of the windows that the journal had. */
static void report_resumed(const struct eval_run_shared *s)
{
    if (s->options->journal)
        s->stats->n_resumed = (size_t)eval_journal_n(s->options->journal);
    for (size_t w = 0; w < s->stats->n_resumed && s->options->window_done; w++)
        s->options->window_done(s->options->user, w);
}

/** The first worker in this thread, each of the others in its own. */
static enum status work(struct eval_run_shared *s, struct eval_run_worker *workers,
                        struct status_why *why)
{
    size_t n_threads = 1;
    while (n_threads < s->task->n_backends &&
           pthread_create(&workers[n_threads].thread, NULL, eval_run_worker_work,
                          &workers[n_threads]) == 0)
        n_threads++;
    if (n_threads < s->task->n_backends) {
        struct status_why no_thread = {"no thread can be started for each of the devices"};
        eval_run_fail(s, STATUS_MEMORY, &no_thread);
    }
    eval_run_worker_work(&workers[0]);
    for (size_t i = 1; i < n_threads; i++)
        pthread_join(workers[i].thread, NULL);
    return s->status == STATUS_OK ? STATUS_OK : status_fail(why, s->status, "%s", s->why.text);
}

static enum status run(struct eval_run_shared *s, struct eval_run_worker *workers,
                       struct status_why *why)
{
    struct eval_scorer_options scorer = scorer_options(s->task, s->options);
    s->workers = workers;
    enum status status = check_task(s->task, why);
    for (size_t i = 0; i < s->task->n_backends && !status; i++)
        status = eval_run_worker_open(&workers[i], s, i, &scorer, why);
    if (status)
        return status;
    for (size_t i = 0; i < s->task->n_backends; i++)
        eval_run_worker_heed_others(&workers[i]);
    double now = base_clock_seconds();
    s->stats->seconds_to_open = now - s->started;
    s->started = now;
    report_resumed(s);
    return work(s, workers, why);
}

enum status eval_run(const struct eval_task *task, const struct eval_run_options *options,
                     struct eval_table *table, struct eval_run_stats *stats, struct status_why *why)
{
    assert(options->batch_tokens > 0 && task->n_backends > 0);
    struct eval_run_stats own;
    struct eval_run_shared s = {
        .task = task, .options = options, .table = table, .stats = stats ? stats : &own};
    *s.stats = (struct eval_run_stats){.max_batch_tokens = eval_run_batch_tokens(task, options)};
    struct eval_run_worker *workers = calloc(task->n_backends, sizeof *workers);
    enum status status = eval_run_shared_open(&s, why);
    if (!workers && status == STATUS_OK)
        status = status_fail(why, STATUS_MEMORY, "no memory for %zu devices", task->n_backends);
    if (!status)
        status = run(&s, workers, why);
    status = eval_resume_end(options->journal, status, why);
    for (size_t i = 0; workers && i < task->n_backends; i++)
        eval_run_worker_close(&workers[i]);
    free(workers);
    s.stats->seconds = base_clock_seconds() - s.started;
    eval_run_shared_close(&s);
    return status;
}
