/**
 * A job's turn with the models: what evaluates for it, whom its progress is told, and the short
 * jobs that are served between its batches. A figure is a function of its own windows, and what is
 * served between changes no model: so nobody's figures depend on it.
 */
#ifndef SERVE_TURN_H
#define SERVE_TURN_H

#include "clients/serve/jobs.h"
#include "clients/serve/resident.h"

/** Stays where it is until the evaluation is over. */
struct serve_turn {
    struct serve_jobs *jobs;
    struct serve_job *job;
    struct cli_backends backends; /* between another job's batches the one that waits meanwhile */
    struct eval_worker_kind kind;
    struct eval_crew crew;
    const struct eval_crew *with; /* for struct eval_models; NULL: nobody is served between */
};

/** On the thread of the jobs. The backends' cancel flag is the job's from now on. */
void serve_turn_begin(struct serve_turn *turn, const struct serve_resident *resident,
                      struct serve_jobs *jobs, struct serve_job *job);
/** For struct eval_run_options; user: the turn. */
void serve_turn_progress(void *user, const struct eval_progress *now);

#endif
