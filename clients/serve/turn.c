#include "clients/serve/turn.h"

/**
 * A worker's batch, and before it what waits and is short. The first worker alone serves it: it
 * has the thread of the jobs, and its backend has nothing else to do.
 */
static enum status evaluate(struct eval_worker *w, struct eval_scorer_times *times,
                            struct status_why *why)
{
    const struct eval_models *models = w->dispatch->models;
    const struct serve_turn *turn = models->crew->user;
    if (w->i == 0) {
        serve_jobs_between(turn->jobs);
        kern_set_cancel(models->backends[0], &w->dispatch->stop);
    }
    return eval_worker_local.evaluate(w, times, why);
}

static void end(void *user, enum status status)
{
    (void)user, (void)status;
}

void serve_turn_begin(struct serve_turn *turn, const struct serve_resident *resident,
                      struct serve_jobs *jobs, struct serve_job *job)
{
    *turn = (struct serve_turn){
        .jobs = jobs, .job = job, .backends = resident->backends, .kind = eval_worker_local};
    if (job->between) {
        turn->backends.n = 1;
    } else {
        turn->kind.evaluate = evaluate;
        turn->crew = (struct eval_crew){.user = turn, .own = &turn->kind, .end = end};
        turn->with = &turn->crew;
    }
    for (size_t i = 0; i < turn->backends.n; i++)
        kern_set_cancel(turn->backends.items[i], &job->cancel);
}

void serve_turn_progress(void *user, const struct eval_progress *now)
{
    const struct serve_turn *turn = user;
    serve_job_progress(turn->jobs, turn->job, now);
}
