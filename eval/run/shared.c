#include "eval/run/shared.h"

#include <math.h>
#include <stdlib.h>

#include "base/arithmetic.h"
#include "base/clock.h"
#include "eval/run/resume.h"

size_t eval_run_largest_batch(const struct eval_task *task, const struct eval_run_options *options)
{
    const struct eval_plan *plan = task->plan;
    size_t n = base_div_up(options->batch_tokens, plan->window);
    size_t most = (size_t)UINT32_MAX / (plan->n_inputs + 1);
    n = n < most ? n : most;
    return n < plan->n_windows ? n : plan->n_windows;
}

enum status eval_run_shared_open(struct eval_run_shared *s, struct status_why *why)
{
    s->n_heads = eval_task_n_tables(s->task);
    s->started = base_clock_seconds();
    s->max_windows = eval_run_largest_batch(s->task, s->options);
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->source_lock, NULL);
    pthread_cond_init(&s->kept, NULL);
    for (size_t w = 0; w < s->table->n_windows; w++)
        s->n_done_before += s->table->done[w];
    s->n_to_do = s->table->n_windows - s->n_done_before;
    s->filled = calloc(s->table->n_windows, sizeof *s->filled);
    if (!s->filled)
        return status_fail(why, STATUS_MEMORY, "no memory for %zu windows", s->table->n_windows);
    while (s->next_to_keep < s->table->n_windows && s->table->done[s->next_to_keep])
        s->next_to_keep++;
    return STATUS_OK;
}

void eval_run_shared_close(struct eval_run_shared *s)
{
    free(s->filled);
    pthread_cond_destroy(&s->kept);
    pthread_mutex_destroy(&s->source_lock);
    pthread_mutex_destroy(&s->lock);
}

bool eval_run_deal(struct eval_run_shared *s, struct eval_run_worker *w)
{
    w->n_batch = 0;
    pthread_mutex_lock(&s->lock);
    for (; s->status == STATUS_OK && s->next_to_deal < s->table->n_windows; s->next_to_deal++) {
        if (w->n_batch == s->max_windows)
            break;
        if (!s->table->done[s->next_to_deal])
            w->windows[w->n_batch++] = s->next_to_deal;
    }
    pthread_mutex_unlock(&s->lock);
    return w->n_batch > 0;
}

enum status eval_run_await(struct eval_run_shared *s, size_t window, struct status_why *why)
{
    pthread_mutex_lock(&s->lock);
    while (s->status == STATUS_OK && s->next_to_keep < window)
        pthread_cond_wait(&s->kept, &s->lock);
    enum status status = s->status;
    pthread_mutex_unlock(&s->lock);
    return status == STATUS_OK ? STATUS_OK
                               : status_fail(why, STATUS_CANCELLED, "another device failed");
}

/** Append windows first .. end, which follow each other, to the journal, and report them. */
static enum status keep_windows(struct eval_run_shared *s, size_t first, size_t end,
                                struct status_why *why)
{
    for (size_t h = 0; h < s->n_heads; h++)
        for (size_t w = first; w < end; w++)
            s->table[h].done[w] = true;
    struct eval_resume resume = {
        .journal = s->options->journal,
        .tables = s->table,
        .n_tables = s->n_heads,
        .sink = s->task->sink,
    };
    if (resume.journal) {
        enum status status = eval_resume_keep(&resume, first, end - first, why);
        if (status != STATUS_OK)
            return status;
    }
    s->n_kept += end - first;
    for (size_t w = first; w < end && s->options->window_done; w++)
        s->options->window_done(s->options->user, w);
    return STATUS_OK;
}

/** Keep all windows that are filled, as far as there is no gap. */
static enum status keep_filled(struct eval_run_shared *s, struct status_why *why)
{
    size_t n_windows = s->table->n_windows;
    enum status status = STATUS_OK;
    while (s->next_to_keep < n_windows && s->filled[s->next_to_keep] && status == STATUS_OK) {
        size_t end = s->next_to_keep;
        while (end < n_windows && s->filled[end])
            end++;
        status = keep_windows(s, s->next_to_keep, end, why);
        while (end < n_windows && s->table->done[end])
            end++;
        s->next_to_keep = end;
    }
    return status;
}

/** With the lock. */
static void fail(struct eval_run_shared *s, enum status status, const struct status_why *why)
{
    if (s->status == STATUS_OK) {
        s->status = status;
        s->why = *why;
    }
    atomic_store(&s->stop, true);
    pthread_cond_broadcast(&s->kept);
}

static void count(struct eval_run_stats *stats, const struct eval_run_worker *w,
                  const struct eval_scorer_times *times)
{
    stats->n_batches++;
    stats->n_windows += w->n_batch;
    stats->n_inputs += w->n_batch * w->shared->task->plan->n_inputs;
    stats->times.forward += times->forward;
    stats->times.head += times->head;
}

enum status eval_run_keep(struct eval_run_shared *s, struct eval_run_worker *w,
                          const struct eval_scorer_times *times, struct status_why *why)
{
    pthread_mutex_lock(&s->lock);
    enum status status = STATUS_CANCELLED;
    if (s->status == STATUS_OK) {
        count(s->stats, w, times);
        for (size_t k = 0; k < w->n_batch; k++)
            s->filled[w->windows[k]] = true;
        s->n_filled += w->n_batch;
        w->share = 0;
        status = keep_filled(s, why);
        if (status != STATUS_OK)
            fail(s, status, why); /* before another worker finds more to keep */
        pthread_cond_broadcast(&s->kept);
    }
    pthread_mutex_unlock(&s->lock);
    return status;
}

void eval_run_fail(struct eval_run_shared *s, enum status status, const struct status_why *why)
{
    pthread_mutex_lock(&s->lock);
    fail(s, status, why);
    pthread_mutex_unlock(&s->lock);
}

/** With the lock. */
static void report(const struct eval_run_shared *s)
{
    double n = (double)s->n_filled;
    for (size_t i = 0; i < s->task->n_backends; i++)
        n += s->workers[i].share;
    struct eval_progress p = {
        .n_windows_done = s->n_done_before + s->n_kept,
        .n_windows = s->table->n_windows,
        .fraction = n / (double)s->n_to_do,
        .seconds = base_clock_seconds() - s->started,
    };
    p.seconds_left = p.fraction > 0 ? p.seconds * (1 - p.fraction) / p.fraction : (double)NAN;
    s->options->progress(s->options->user, &p);
}

void eval_run_on_fraction(void *worker, double fraction)
{
    struct eval_run_worker *w = worker;
    struct eval_run_shared *s = w->shared;
    if (w->cancel && atomic_load(w->cancel))
        atomic_store(&s->stop, true);
    if (!s->options->progress)
        return;
    pthread_mutex_lock(&s->lock);
    w->share = fraction * (double)w->n_batch;
    report(s);
    pthread_mutex_unlock(&s->lock);
}
