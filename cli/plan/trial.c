/*
 * Some seconds of the run itself. First a batch of a tile, after which all weights have been read
 * and a pace is known; then batches as large as the run's, as far as the time goes. A model of
 * which not even a tile is evaluated in that time is judged by the layers that were.
 */
#include <math.h>
#include <time.h>

#include "base/arithmetic.h"
#include "base/clock.h"
#include "cli/plan/plan.h"
#include "model/forward/forward.h"

/** A run that is broken off. */
struct trial {
    const struct cli_evaluation *e;
    const atomic_bool *interrupt;
    atomic_bool stop;
    double seconds;   /* after which it ends, unless the first batch is soon whole */
    bool only_first;  /* or after the first batch */
    size_t n_before;  /* units that were finished before it */
    double committed; /* clock of the latest commit; 0: there was none */
    double reported;  /* and of the latest report of progress */
    double processor_began, processor_committed, processor_reported;
    double fraction;
    double work_began;
    double first; /* the share of the first batch in the arithmetic of all */
    struct eval_run_stats stats;
};

/** What is whole says more, and so does what had a processor: it may take so many times as long. */
static const double patience = 3;

static bool is_over(const struct trial *t, const struct eval_progress *now)
{
    if (now->fraction <= 0 || now->seconds < t->seconds)
        return false;
    double first_takes = now->seconds * t->first / now->fraction;
    double processor = t->processor_reported - t->processor_began;
    if (now->seconds >= patience * t->seconds)
        return true;
    return t->committed > 0 || (first_takes > patience * t->seconds && processor > t->seconds / 2);
}

static void on_unit(void *user, size_t unit)
{
    struct trial *t = user;
    if (unit < t->n_before)
        return; /* the journal's */
    t->committed = base_clock_seconds();
    t->processor_committed = base_clock_process_seconds();
    if (t->only_first)
        atomic_store(&t->stop, true);
}

static void on_progress(void *user, const struct eval_progress *now)
{
    struct trial *t = user;
    t->reported = base_clock_seconds();
    t->processor_reported = base_clock_process_seconds();
    t->work_began = t->reported - now->seconds;
    t->fraction = now->fraction;
    if (atomic_load(t->interrupt) || is_over(t, now))
        atomic_store(&t->stop, true);
}

static enum status run(struct trial *t, size_t batch_tokens, struct status_why *why)
{
    const struct cli_evaluation *e = t->e;
    struct eval_run_options options = {.unit_done = on_unit, .progress = on_progress, .user = t};
    for (size_t i = 0; i < e->models.n_backends; i++)
        kern_set_cancel(e->models.backends[i], &t->stop);
    t->n_before = e->units->n_finished;
    enum status status = eval_run_prepare(e->units, &e->models, batch_tokens, why);
    struct eval_size size;
    if (!status && e->units->n_items)
        t->first =
            eval_batch_cost(e->units, 0, eval_batch_end(e->units, 0, &size)) / e->units->cost;
    t->processor_began = base_clock_process_seconds();
    if (!status)
        status = eval_run(e->units, &e->models, &options, &t->stats, why);
    for (size_t i = 0; i < e->models.n_backends; i++)
        kern_set_cancel(e->models.backends[i], t->interrupt);
    if (status == STATUS_CANCELLED && !atomic_load(t->interrupt))
        status = STATUS_OK;
    return status;
}

/** From whole batches: layers and heads apart. */
static void set_by_batches(struct cli_plan_pace *pace, const struct trial *t,
                           const struct cli_plan_work *done)
{
    double n_workers = (double)eval_models_n_workers(&t->e->models);
    const struct eval_scorer_times *times = &t->stats.times;
    pace->whole = true;
    pace->n_tokens = done->n_tokens;
    pace->seconds = t->committed - t->work_began;
    pace->n_busy = (t->processor_committed - t->processor_began) / pace->seconds;
    pace->forward = n_workers * done->forward / times->forward;
    pace->head =
        times->head > 0 && done->head > 0 ? n_workers * done->head / times->head : pace->forward;
    pace->rest = fmax(pace->seconds - (times->forward + times->head) / n_workers, 0) /
                 (double)done->n_tokens;
}

/** From a part of the first batch: all arithmetic alike. */
static void set_by_part(struct cli_plan_pace *pace, const struct trial *t)
{
    const struct eval_units *units = t->e->units;
    struct cli_plan_work first;
    cli_plan_count(&first, units, &t->e->models, 1);
    double share = t->fraction / t->first;
    pace->whole = false;
    pace->n_tokens = (size_t)(fmin(share, 1) * (double)first.n_tokens);
    pace->seconds = t->reported - t->work_began;
    pace->n_busy = (t->processor_reported - t->processor_began) / pace->seconds;
    pace->forward = pace->head = share * (first.forward + first.head) / pace->seconds;
    pace->rest = 0;
}

static void set_pace(struct cli_plan_pace *pace, const struct trial *t)
{
    struct cli_plan_work done;
    cli_plan_count(&done, t->e->units, &t->e->models, t->stats.n_batches);
    pace->opening = t->stats.seconds_to_open;
    if (t->stats.n_batches && t->committed > 0 && t->stats.times.forward > 0)
        set_by_batches(pace, t, &done);
    else if (t->fraction > 0)
        set_by_part(pace, t);
}

enum status cli_plan_try(struct cli_plan *plan, struct status_why *why)
{
    struct cli_evaluation *e = plan->e;
    size_t tile = kern_describe(e->models.backends[0]).tile_tokens;
    tile = base_min(tile ? tile : MODEL_TILE_TOKENS, plan->work.batch_tokens);
    double limit = (double)plan->settings->seconds;
    /* Variants share what an earlier one left: they are not begun twice. */
    bool twice = !e->units->kind->variant;
    struct trial t = {.e = e,
                      .interrupt = cli_evaluation_cancel(e),
                      .seconds = twice ? limit / 2 : limit,
                      .only_first = twice};
    enum status status = run(&t, tile, why);
    if (status)
        return status;
    set_pace(&plan->pace, &t);
    if (!twice || e->units->n_finished == e->units->n || atomic_load(t.interrupt))
        return STATUS_OK;
    const struct cli_plan_pace *pace = &plan->pace;
    double tokens = limit / 3 * (double)pace->n_tokens / pace->seconds;
    size_t batch = pace->whole ? (size_t)fmax(tokens, (double)tile) : tile;
    t = (struct trial){.e = e, .interrupt = t.interrupt, .seconds = limit};
    status = run(&t, base_min(batch, plan->work.batch_tokens), why);
    if (!status && (t.stats.n_batches || !plan->pace.whole))
        set_pace(&plan->pace, &t);
    return status;
}
