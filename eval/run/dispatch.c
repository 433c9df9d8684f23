#include "eval/run/dispatch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/condition.h"
#include "eval/run/worker.h"
#include "kernels/backend.h"

static void add(struct eval_size *sum, struct eval_size more)
{
    sum->n_tokens += more.n_tokens;
    sum->n_segments += more.n_segments;
    sum->n_rows += more.n_rows;
    sum->n_targets += more.n_targets;
    sum->longest = base_max(sum->longest, more.longest);
}

size_t eval_batch_end(const struct eval_units *units, size_t first, struct eval_size *size)
{
    *size = units->kind->size(units, first);
    size_t end = first + 1;
    for (; end < units->n_items && !units->kind->variant; end++) {
        if (units->kind->ends_batch && units->kind->ends_batch(units, end - 1))
            break;
        struct eval_size next = units->kind->size(units, end);
        if (size->n_tokens + next.n_tokens > units->batch_tokens)
            break;
        add(size, next);
    }
    return end;
}

double eval_batch_cost(const struct eval_units *units, size_t first, size_t end)
{
    double cost = 0;
    for (size_t i = first; i < end; i++)
        cost += units->kind->cost ? units->kind->cost(units, i)
                                  : (double)units->kind->size(units, i).n_tokens;
    return cost;
}

enum status eval_dispatch_open(struct eval_dispatch *d, struct status_why *why)
{
    d->started = base_clock_seconds();
    d->cancel = d->models->backends[0]->cancel;
    pthread_mutex_init(&d->lock, NULL);
    pthread_mutex_init(&d->source_lock, NULL);
    base_condition_init(&d->committed);
    if (base_array_new(d->taken, d->units->n_items + 1, "units", why))
        return STATUS_MEMORY;
    return STATUS_OK;
}

void eval_dispatch_close(struct eval_dispatch *d)
{
    free(d->taken);
    pthread_cond_destroy(&d->committed);
    pthread_mutex_destroy(&d->source_lock);
    pthread_mutex_destroy(&d->lock);
}

bool eval_dispatch_next(struct eval_dispatch *d, struct eval_worker *w)
{
    pthread_mutex_lock(&d->lock);
    while (w->n_ahead < w->depth && d->next_item < d->units->n_items && !d->units->n_enough) {
        struct eval_size size;
        struct eval_given *given = &w->ahead[w->n_ahead++];
        given->first = d->next_item;
        given->end = d->next_item = eval_batch_end(d->units, given->first, &size);
        given->n_tokens = size.n_tokens;
        given->cost = eval_batch_cost(d->units, given->first, given->end);
    }
    bool any = !d->status && w->n_ahead > 0;
    if (any) {
        w->at = w->ahead[0];
        memmove(w->ahead, w->ahead + 1, --w->n_ahead * sizeof *w->ahead);
    }
    pthread_mutex_unlock(&d->lock);
    return any;
}

enum status eval_dispatch_await(struct eval_dispatch *d, size_t item, struct status_why *why)
{
    pthread_mutex_lock(&d->lock);
    while (!d->status && d->next_to_commit < item)
        pthread_cond_wait(&d->committed, &d->lock);
    enum status status = d->status;
    pthread_mutex_unlock(&d->lock);
    return status ? status_fail(why, STATUS_CANCELLED, "another device failed") : STATUS_OK;
}

/** Append a finished unit to the journal. */
static enum status keep(const struct eval_dispatch *d, size_t unit, struct status_why *why)
{
    const struct eval_unit_kind *kind = d->units->kind;
    size_t n = kind->n_values(d->units, unit);
    double *values;
    if (base_array_new(values, n, "numbers of a journal entry", why))
        return STATUS_MEMORY;
    enum status status = kind->save(d->units, unit, values, why);
    if (!status)
        status = eval_journal_append(d->options->journal, values, n, why);
    free(values);
    return status;
}

bool eval_dispatch_enough(struct eval_dispatch *d)
{
    struct eval_units *u = d->units;
    for (; u->kind->enough && !u->n_enough && u->n_judged < u->n_finished; u->n_judged++)
        if (u->kind->enough(u, u->n_judged))
            u->n_enough = u->n_judged + 1;
    return u->n_enough > 0;
}

enum status eval_dispatch_report(struct eval_dispatch *d, struct status_why *why)
{
    struct eval_units *units = d->units;
    struct eval_journal *journal = d->options->journal;
    size_t n = units->n_finished;
    enum status status = eval_models_check_unchanged(d->models, why);
    if (!status && journal && units->kind->sync && eval_journal_n(journal) < n)
        status = units->kind->sync(units, why);
    for (size_t u = journal ? (size_t)eval_journal_n(journal) : n; u < n && !status; u++)
        status = keep(d, u, why);
    size_t n_wanted = eval_dispatch_enough(d) ? units->n_enough : n;
    for (; units->n_reported < n_wanted && !status; units->n_reported++) {
        d->stats->n_units += units->n_reported >= units->n_resumed;
        if (d->options->unit_done)
            d->options->unit_done(d->options->user, units->n_reported);
    }
    return status;
}

/** With the lock. */
static void fail(struct eval_dispatch *d, enum status status, const struct status_why *why)
{
    if (!d->status || (d->status == STATUS_CANCELLED && status != STATUS_CANCELLED)) {
        d->status = status;
        d->why = *why;
    }
    atomic_store(&d->stop, true);
    pthread_cond_broadcast(&d->committed);
}

enum status eval_dispatch_commit(struct eval_dispatch *d, struct eval_worker *w,
                                 const struct eval_scorer_times *times, struct status_why *why)
{
    pthread_mutex_lock(&d->lock);
    enum status status = STATUS_CANCELLED;
    if (!d->status) {
        d->stats->n_batches++;
        d->stats->n_inputs += w->at.n_tokens;
        d->stats->times.forward += times->forward;
        d->stats->times.head += times->head;
        d->n_tokens_done += w->at.n_tokens;
        d->cost_done += w->at.cost;
        d->worked += w->at.cost * (1 - d->units->idle);
        w->fraction = 0;
        for (size_t i = w->at.first; i < w->at.end; i++)
            d->taken[i] = true;
        for (; d->taken[d->next_to_commit]; d->next_to_commit++)
            d->units->kind->finish(d->units, d->next_to_commit);
        status = eval_dispatch_report(d, why);
        if (status)
            fail(d, status, why); /* before another worker finds more to commit */
        pthread_cond_broadcast(&d->committed);
    }
    pthread_mutex_unlock(&d->lock);
    return status;
}

void eval_dispatch_fail(struct eval_dispatch *d, enum status status, const struct status_why *why)
{
    pthread_mutex_lock(&d->lock);
    fail(d, status, why);
    pthread_mutex_unlock(&d->lock);
}

/** With the lock. */
static void report_progress(const struct eval_dispatch *d)
{
    const struct eval_units *units = d->units;
    double n_tokens = (double)d->n_tokens_done, cost = d->cost_done;
    for (size_t i = 0; i < d->n_workers; i++) {
        n_tokens += d->workers[i].fraction * (double)d->workers[i].at.n_tokens;
        cost += d->workers[i].fraction * d->workers[i].at.cost;
    }
    double seconds = base_clock_seconds() - d->started, wanted = 1 - units->idle;
    double worked = d->worked + (cost - d->cost_done) * wanted;
    double pace = worked > 0 ? seconds / worked * wanted : (double)NAN; /* of what is left */
    struct eval_progress p = {
        .n_units_done = units->n_reported,
        .n_units = units->n,
        .n_tokens_done = (size_t)n_tokens,
        .n_tokens = units->n_tokens,
        .fraction = cost / units->cost,
        .seconds = seconds,
        .seconds_left = pace * (units->cost - cost),
    };
    if (units->n_look > units->n_reported && units->n_look < units->n) {
        double n_left = (double)(units->n - units->n_resumed);
        double to_look = (double)(units->n_look - units->n_resumed) / n_left * units->cost;
        p.seconds_to_look = pace * fmax(to_look - cost, 0);
    }
    d->options->progress(d->options->user, &p);
}

void eval_dispatch_on_fraction(void *worker, double fraction)
{
    struct eval_worker *w = worker;
    struct eval_dispatch *d = w->dispatch;
    if (d->cancel && atomic_load(d->cancel))
        atomic_store(&d->stop, true);
    if (!d->options->progress)
        return;
    pthread_mutex_lock(&d->lock);
    w->fraction = fraction;
    report_progress(d);
    pthread_mutex_unlock(&d->lock);
}
