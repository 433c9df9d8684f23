/**
 * Jobs: what the server does with its models, one after the other on one thread, in the order in
 * which it was asked for. Only short jobs that change nothing do not wait for long ones: they are
 * served between a long one's batches. Functions may be called from any thread unless they say
 * otherwise.
 */
#ifndef SERVE_JOBS_H
#define SERVE_JOBS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "clients/serve/budget.h"
#include "eval/run.h"

/** Tokens of a job that is short, at most. */
enum { SERVE_SHORT_TOKENS = 8192 };

enum serve_job_state {
    SERVE_JOB_WAITING,
    SERVE_JOB_RUNNING,
    SERVE_JOB_DONE,
    SERVE_JOB_FAILED,
    SERVE_JOB_CANCELLED
};
enum { SERVE_JOB_N_STATES = SERVE_JOB_CANCELLED + 1 };

/** "waiting", "running", "done", "failed", "cancelled". */
const char *serve_job_state_name(enum serve_job_state state);

struct serve_job;

struct serve_job_kind {
    const char *name;
    /**
     * On the thread of the jobs. Leaves a JSON text in job->result, also after a failure if there
     * is one; reads job->cancel.
     */
    enum status (*run)(void *server, struct serve_job *job, struct status_why *why);
    void (*free_input)(void *input);
    /** Tokens that it evaluates, at most; SIZE_MAX: that is not known. NULL: it is never short. */
    size_t (*n_tokens)(const void *input);
    bool changes; /* the models: what was asked for later comes after it */
};

struct serve_job {
    const struct serve_job_kind *kind;
    void *input;    /* the kind's; NULL: it has ended */
    size_t n_taken; /* of the budget, for the input and what is made of it */
    uint64_t id;
    time_t asked;
    char client[64]; /* who asked: an address */
    atomic_bool cancel;
    bool between; /* it runs between the batches of another */

    /* Under the lock; what is not, the thread of the jobs alone writes before the job ends. */

    enum serve_job_state state;
    enum status status;      /* once it has ended */
    struct status_why why;   /* the same */
    char *result;            /* the same; JSON text, cJSON_free; NULL: there is none */
    struct eval_progress at; /* while it is running */
    double waits_since;      /* when it was asked for */
    double waited;           /* seconds, until it began */
    double began;            /* when it began to run; 0: not yet */
    double seconds;          /* that it ran, without what was served between; once it has ended */
    bool overdue;            /* it was cancelled because it ran too long */
    unsigned version;        /* counts what a watcher would like to see */
    double shown;            /* when it was raised last */
    unsigned n_holders;
    bool listed; /* stays for a while when it has ended */
    struct serve_job *next;
};

struct serve_jobs;

struct serve_jobs_options {
    size_t n_waiting;            /* that may wait, at most */
    struct serve_budget *budget; /* where what a job had goes at its end */
    double seconds;              /* that one may run; 0: any time */
    void *server;
    /** Once, on the thread of the jobs, before the first: may take long. */
    enum status (*open)(void *server, struct status_why *why);
    /** Once, on that thread, after the last one. */
    void (*close)(void *server);
    /** A job has ended: the next thing that is done. Under the lock; any thread. NULL: nothing. */
    void (*ended)(void *server, const struct serve_job *job);
};

/** Start the thread. Fails: STATUS_MEMORY, STATUS_DEVICE (the system refuses a thread). */
enum status serve_jobs_open(struct serve_jobs **out, const struct serve_jobs_options *options,
                            struct status_why *why);

/** What the thread is at. */
enum serve_jobs_state {
    SERVE_JOBS_OPENING,
    SERVE_JOBS_READY,
    SERVE_JOBS_BROKEN,
    SERVE_JOBS_ENDING
};
struct serve_jobs_count {
    enum serve_jobs_state state;
    size_t n_waiting;
    bool running;
    double seconds_left; /* of the one that runs; NaN: not known */
    uint64_t ended[SERVE_JOB_N_STATES];
    uint64_t n_tokens; /* evaluated */
    double seconds;    /* that jobs ran */
};
struct serve_jobs_count serve_jobs_count(struct serve_jobs *jobs);
/** Why `open` failed, once the state is SERVE_JOBS_BROKEN. */
enum status serve_jobs_why(struct serve_jobs *jobs, struct status_why *why);

struct serve_job_order {
    const struct serve_job_kind *kind;
    void *input;        /* the kind's, given away whatever happens */
    size_t n_taken;     /* of the budget, the same */
    bool listed;        /* it can be found by its id, also for a while after its end */
    const char *client; /* copied */
};
/**
 * Add a job, and hold it.
 * Returns NULL where the queue is full, is not ready, or there is no memory.
 */
struct serve_job *serve_jobs_add(struct serve_jobs *jobs, const struct serve_job_order *order);

/**
 * The job that runs is between two batches: run those that wait since before this call, are short,
 * and were asked for before any that changes the models. On the thread of the jobs; not by a job
 * that runs between.
 */
void serve_jobs_between(struct serve_jobs *jobs);
/** Hold a listed job; NULL: no job has that id. */
struct serve_job *serve_jobs_find(struct serve_jobs *jobs, uint64_t id);
void serve_job_release(struct serve_jobs *jobs, struct serve_job *job);

/** Ask it to end, and keep it from beginning. Returns false where it has ended already. */
bool serve_job_cancel(struct serve_jobs *jobs, struct serve_job *job);

/**
 * Wait until the job is not at *version any more, or so many seconds. Returns a copy of what is
 * under the lock; strings of it are valid while the job is held, `result` once it has ended.
 */
struct serve_job_view {
    enum serve_job_state state;
    struct eval_progress at;
};
struct serve_job_view serve_job_watch(struct serve_jobs *jobs, struct serve_job *job,
                                      unsigned *version, double seconds);

/** Call for each listed job, the oldest first, under the lock. */
void serve_jobs_walk(struct serve_jobs *jobs,
                     void (*visit)(void *user, const struct serve_job *job), void *user);

/**
 * Cancel the job that runs if it runs too long (what was served between does not count), and have
 * what a cancelled one waits for fail; call it now and then.
 */
void serve_jobs_limit(struct serve_jobs *jobs);

/** The job that runs has come so far. On the thread of the jobs. */
void serve_job_progress(struct serve_jobs *jobs, struct serve_job *job,
                        const struct eval_progress *at);

/**
 * Take no further jobs; cancel those that wait; let the one that runs go on for so many seconds,
 * then cancel it. Returns false where the thread has not ended `patience` seconds after that: then
 * nothing may be released.
 */
bool serve_jobs_end(struct serve_jobs *jobs, double grace, double patience);
/** After serve_jobs_end returned true, and when nothing holds a job. NULL is allowed. */
void serve_jobs_close(struct serve_jobs *jobs);

#endif
