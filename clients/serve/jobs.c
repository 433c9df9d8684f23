#include "clients/serve/jobs.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/condition.h"

enum { MAX_LISTED = 32, MAX_RESULTS = 64 << 20 }; /* that have ended; bytes of their results */
#define WAKING SIGUSR1
static const double progress_interval = 0.2;

struct serve_jobs {
    struct serve_jobs_options options;
    pthread_t thread;
    pthread_mutex_t lock; /* of all that follows, and of the jobs */
    pthread_cond_t changed;
    struct serve_job *first; /* oldest first: listed ones that have ended, the one that runs, ... */
    struct serve_job *running;
    struct serve_job *interrupted; /* what runs is served between its batches; NULL: is not */
    uint64_t last_id;
    struct serve_jobs_count count;
    enum status status;
    struct status_why why;
    bool over; /* the thread is at its end */
};

const char *serve_job_state_name(enum serve_job_state state)
{
    static const char *const names[] = {"waiting", "running", "done", "failed", "cancelled"};
    return names[state];
}

static bool busy(const struct serve_jobs *jobs)
{
    return jobs->running || jobs->interrupted;
}

static bool ended(const struct serve_job *job)
{
    return job->state > SERVE_JOB_RUNNING;
}

static void lock(struct serve_jobs *jobs)
{
    pthread_mutex_lock(&jobs->lock);
}

static void unlock(struct serve_jobs *jobs)
{
    pthread_mutex_unlock(&jobs->lock);
}

/** Wait for a change; false when the time is over. */
static bool wait_until(struct serve_jobs *jobs, double end)
{
    return base_condition_wait(&jobs->changed, &jobs->lock, end);
}

/** What a job has no use for any more. */
static void release_input(struct serve_jobs *jobs, struct serve_job *job)
{
    if (job->input)
        job->kind->free_input(job->input);
    serve_budget_give(jobs->options.budget, job->n_taken);
    job->input = NULL;
    job->n_taken = 0;
}

/** Free a job that nobody can reach any more. Under the lock, as all below up to the thread. */
static void drop(struct serve_jobs *jobs, struct serve_job *job)
{
    struct serve_job **at = &jobs->first;
    while (*at != job)
        at = &(*at)->next;
    *at = job->next;
    release_input(jobs, job);
    cJSON_free(job->result);
    free(job);
}

/** Bytes that a listed job keeps after its end. */
static size_t kept_bytes(const struct serve_job *job)
{
    return ended(job) && job->listed && job->result ? strlen(job->result) : 0;
}

/** Drop what has ended and is neither held nor among the latest that are listed. */
static void tidy(struct serve_jobs *jobs)
{
    size_t n_listed = 0, n_bytes = 0;
    for (const struct serve_job *job = jobs->first; job; job = job->next) {
        n_listed += ended(job) && job->listed;
        n_bytes += kept_bytes(job);
    }
    for (struct serve_job *job = jobs->first, *next; job; job = next) {
        next = job->next;
        if (!ended(job) || job->n_holders)
            continue;
        if (!job->listed || n_listed > MAX_LISTED || (n_bytes > MAX_RESULTS && n_listed > 1)) {
            n_listed -= job->listed;
            n_bytes -= kept_bytes(job);
            drop(jobs, job);
        }
    }
}

static void end(struct serve_jobs *jobs, struct serve_job *job, enum status status)
{
    job->status = status;
    job->state = !status                      ? SERVE_JOB_DONE
                 : status == STATUS_CANCELLED ? SERVE_JOB_CANCELLED
                                              : SERVE_JOB_FAILED;
    job->version++;
    if (jobs->options.ended)
        jobs->options.ended(jobs->options.server, job);
    jobs->count.ended[job->state]++;
    release_input(jobs, job);
    pthread_cond_broadcast(&jobs->changed);
    tidy(jobs);
}

static void cancel_waiting(struct serve_jobs *jobs, struct serve_job *job)
{
    jobs->count.n_waiting--;
    end(jobs, job, status_fail(&job->why, STATUS_CANCELLED, "cancelled before it began"));
}

static struct serve_job *next_waiting(struct serve_jobs *jobs)
{
    struct serve_job *job = jobs->first;
    while (job && job->state != SERVE_JOB_WAITING)
        job = job->next;
    return job;
}

static void run(struct serve_jobs *jobs, struct serve_job *job)
{
    jobs->running = job;
    jobs->count.n_waiting--;
    job->state = SERVE_JOB_RUNNING;
    job->began = base_clock_seconds();
    job->waited = job->began - job->waits_since;
    job->at.seconds_left = (double)NAN;
    job->version++;
    pthread_cond_broadcast(&jobs->changed);
    unlock(jobs);
    enum status status = job->kind->run(jobs->options.server, job, &job->why);
    if (job->result)
        cJSON_Minify(job->result);
    lock(jobs);
    job->seconds = base_clock_seconds() - job->began;
    jobs->count.seconds += job->seconds;
    if (jobs->interrupted)
        jobs->interrupted->began += job->seconds;
    if (status && job->overdue)
        status = status_fail(&job->why, STATUS_CANCELLED,
                             "cancelled: it ran longer than --job-timeout, %g seconds",
                             jobs->options.seconds);
    else if (status == STATUS_IO && atomic_load(&job->cancel)) /* what it waited for was ended */
        status = status_fail(&job->why, STATUS_CANCELLED, "cancelled");
    jobs->count.n_tokens += job->at.n_tokens_done;
    jobs->running = NULL;
    end(jobs, job, status);
}

static bool is_short(const struct serve_job *job)
{
    return job->kind->n_tokens && job->kind->n_tokens(job->input) <= SERVE_SHORT_TOKENS;
}

/** The first that may be served between the batches of another; none after one that changes. */
static struct serve_job *next_short(const struct serve_jobs *jobs, uint64_t last_id)
{
    for (struct serve_job *job = jobs->first; job && job->id <= last_id; job = job->next) {
        if (job->state != SERVE_JOB_WAITING)
            continue;
        if (job->kind->changes)
            return NULL;
        if (is_short(job))
            return job;
    }
    return NULL;
}

void serve_jobs_between(struct serve_jobs *jobs)
{
    struct serve_job *job;
    lock(jobs);
    uint64_t last_id = jobs->last_id; /* those that come meanwhile wait: the long one goes on */
    jobs->interrupted = jobs->running;
    while ((job = next_short(jobs, last_id))) {
        job->between = true;
        run(jobs, job);
    }
    jobs->running = jobs->interrupted;
    jobs->interrupted = NULL;
    unlock(jobs);
}

/** A call that waits for the other end of a pipe fails. */
static void wake(int number)
{
    (void)number;
}

static void *serve(void *user)
{
    struct serve_jobs *jobs = user;
    struct status_why why = {""};
    enum status status = jobs->options.open(jobs->options.server, &why);
    lock(jobs);
    jobs->status = status;
    jobs->why = why;
    if (jobs->count.state == SERVE_JOBS_OPENING)
        jobs->count.state = status ? SERVE_JOBS_BROKEN : SERVE_JOBS_READY;
    pthread_cond_broadcast(&jobs->changed);
    while (jobs->count.state != SERVE_JOBS_ENDING) {
        struct serve_job *job = next_waiting(jobs);
        if (job)
            run(jobs, job);
        else
            pthread_cond_wait(&jobs->changed, &jobs->lock);
    }
    unlock(jobs);
    jobs->options.close(jobs->options.server);
    lock(jobs);
    jobs->over = true;
    pthread_cond_broadcast(&jobs->changed);
    unlock(jobs);
    return NULL;
}

enum status serve_jobs_open(struct serve_jobs **out, const struct serve_jobs_options *options,
                            struct status_why *why)
{
    struct serve_jobs *jobs = calloc(1, sizeof *jobs);
    *out = NULL;
    if (!jobs)
        return status_fail(why, STATUS_MEMORY, "no memory for a queue");
    jobs->options = *options;
    pthread_mutex_init(&jobs->lock, NULL);
    base_condition_init(&jobs->changed);
    const struct sigaction waking = {.sa_handler = wake}; /* no SA_RESTART */
    sigaction(WAKING, &waking, NULL);
    if (pthread_create(&jobs->thread, NULL, serve, jobs)) {
        free(jobs);
        return status_fail(why, STATUS_DEVICE, "the system refuses a thread");
    }
    *out = jobs;
    return STATUS_OK;
}

struct serve_jobs_count serve_jobs_count(struct serve_jobs *jobs)
{
    lock(jobs);
    struct serve_jobs_count count = jobs->count;
    const struct serve_job *job = jobs->interrupted ? jobs->interrupted : jobs->running;
    count.running = job;
    count.seconds_left = job ? job->at.seconds_left : (double)NAN;
    unlock(jobs);
    return count;
}

enum status serve_jobs_why(struct serve_jobs *jobs, struct status_why *why)
{
    lock(jobs);
    *why = jobs->why;
    enum status status = jobs->status;
    unlock(jobs);
    return status;
}

struct serve_job *serve_jobs_add(struct serve_jobs *jobs, const struct serve_job_order *order)
{
    struct serve_job *job = calloc(1, sizeof *job);
    lock(jobs);
    bool taken = job && jobs->count.state == SERVE_JOBS_READY &&
                 jobs->count.n_waiting < jobs->options.n_waiting + !busy(jobs);
    if (taken) {
        job->kind = order->kind;
        job->input = order->input;
        job->n_taken = order->n_taken;
        job->id = ++jobs->last_id;
        job->asked = time(NULL);
        job->waits_since = base_clock_seconds();
        snprintf(job->client, sizeof job->client, "%s", order->client);
        job->listed = order->listed;
        job->n_holders = 1;
        struct serve_job **at = &jobs->first;
        while (*at)
            at = &(*at)->next;
        *at = job;
        jobs->count.n_waiting++;
        pthread_cond_broadcast(&jobs->changed);
    }
    unlock(jobs);
    if (taken)
        return job;
    order->kind->free_input(order->input);
    serve_budget_give(jobs->options.budget, order->n_taken);
    free(job);
    return NULL;
}

struct serve_job *serve_jobs_find(struct serve_jobs *jobs, uint64_t id)
{
    lock(jobs);
    struct serve_job *job = jobs->first;
    while (job && (job->id != id || !job->listed))
        job = job->next;
    if (job)
        job->n_holders++;
    unlock(jobs);
    return job;
}

void serve_job_release(struct serve_jobs *jobs, struct serve_job *job)
{
    lock(jobs);
    job->n_holders--;
    tidy(jobs);
    unlock(jobs);
}

bool serve_job_cancel(struct serve_jobs *jobs, struct serve_job *job)
{
    lock(jobs);
    bool cancelled = !ended(job);
    if (job->state == SERVE_JOB_WAITING)
        cancel_waiting(jobs, job);
    else if (cancelled)
        atomic_store(&job->cancel, true);
    unlock(jobs);
    return cancelled;
}

struct serve_job_view serve_job_watch(struct serve_jobs *jobs, struct serve_job *job,
                                      unsigned *version, double seconds)
{
    double until = base_clock_seconds() + seconds;
    lock(jobs);
    while (job->version == *version && !ended(job) && wait_until(jobs, until))
        ;
    *version = job->version;
    struct serve_job_view view = {job->state, job->at};
    unlock(jobs);
    return view;
}

void serve_jobs_walk(struct serve_jobs *jobs,
                     void (*visit)(void *user, const struct serve_job *job), void *user)
{
    lock(jobs);
    for (const struct serve_job *job = jobs->first; job; job = job->next)
        if (job->listed)
            visit(user, job);
    unlock(jobs);
}

void serve_job_progress(struct serve_jobs *jobs, struct serve_job *job,
                        const struct eval_progress *at)
{
    double now = base_clock_seconds();
    lock(jobs);
    job->at = *at;
    if (now - job->shown >= progress_interval) {
        job->shown = now;
        job->version++;
        pthread_cond_broadcast(&jobs->changed);
    }
    unlock(jobs);
}

void serve_jobs_limit(struct serve_jobs *jobs)
{
    lock(jobs);
    struct serve_job *job = jobs->running;
    if (job && jobs->options.seconds > 0 &&
        base_clock_seconds() - job->began > jobs->options.seconds) {
        job->overdue = true;
        atomic_store(&job->cancel, true);
    }
    if (job && atomic_load(&job->cancel))
        pthread_kill(jobs->thread, WAKING); /* again and again, until it waits no more */
    unlock(jobs);
}

bool serve_jobs_end(struct serve_jobs *jobs, double grace, double patience)
{
    double until = base_clock_seconds() + grace;
    lock(jobs);
    jobs->count.state = SERVE_JOBS_ENDING;
    for (struct serve_job *job; (job = next_waiting(jobs));)
        cancel_waiting(jobs, job);
    pthread_cond_broadcast(&jobs->changed);
    while (!jobs->over && wait_until(jobs, until))
        ;
    if (jobs->running)
        atomic_store(&jobs->running->cancel, true);
    if (jobs->interrupted)
        atomic_store(&jobs->interrupted->cancel, true);
    until = base_clock_seconds() + patience;
    while (!jobs->over && wait_until(jobs, until))
        ;
    bool over = jobs->over;
    unlock(jobs);
    if (over)
        pthread_join(jobs->thread, NULL);
    return over;
}

void serve_jobs_close(struct serve_jobs *jobs)
{
    if (!jobs)
        return;
    while (jobs->first)
        drop(jobs, jobs->first);
    pthread_cond_destroy(&jobs->changed);
    pthread_mutex_destroy(&jobs->lock);
    free(jobs);
}
