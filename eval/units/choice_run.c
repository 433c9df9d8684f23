/* Tasks through the model: each is a group of sequences, its choices (eval/units/sequences.h). */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "eval/run/resume.h"
#include "eval/units/choice.h"
#include "eval/units/sequences.h"

/** The first choice of a misread task, with the token behind it that is read there. */
struct extended {
    int32_t *ids;
    double *log_probs; /* from the task's first_scored on */
};

struct run {
    struct eval_choices *choices;
    const struct eval_choices_run *options;
    struct eval_sequences sequences; /* of the tasks to do; a group each, in order */
    struct extended *extended;       /* [tasks to do] */
    size_t n_resumed;                /* tasks that the journal had */
    size_t n_done;                   /* those included */
};

static enum status no_memory(const struct run *r, struct status_why *why)
{
    return status_fail(why, STATUS_MEMORY, "no memory to evaluate %zu tasks", r->choices->n);
}

static enum status extend(struct run *r, const struct eval_choice_task *t, struct extended *e,
                          struct eval_sequence *first, struct status_why *why)
{
    size_t n = first->n_tokens;
    e->ids = malloc((n + 1) * sizeof *e->ids);
    e->log_probs = malloc((n + 1 - t->first_scored) * sizeof *e->log_probs);
    if (!e->ids || !e->log_probs)
        return no_memory(r, why);
    memcpy(e->ids, first->ids, n * sizeof *e->ids);
    e->ids[n] = t->choices[1].tokens.ids[t->n_common];
    first->ids = e->ids;
    first->n_tokens = n + 1;
    first->log_probs = e->log_probs;
    return STATUS_OK;
}

/** Every choice of the tasks to do as a sequence, every task as a group. */
static enum status make_sequences(struct run *r, struct status_why *why)
{
    size_t n_tasks = r->choices->n - r->n_resumed, n = 0;
    const struct eval_choice_task *tasks = r->choices->tasks + r->n_resumed;
    for (size_t k = 0; k < n_tasks; k++)
        n += tasks[k].n_choices;
    struct eval_sequences *s = &r->sequences;
    s->items = calloc(n + 1, sizeof *s->items);
    s->groups = calloc(n_tasks + 1, sizeof *s->groups);
    r->extended = calloc(n_tasks + 1, sizeof *r->extended);
    enum status status = s->items && s->groups && r->extended ? STATUS_OK : no_memory(r, why);
    for (size_t k = 0; k < n_tasks && !status; k++) {
        const struct eval_choice_task *t = &tasks[k];
        s->groups[s->n_groups++] =
            (struct eval_sequence_group){.first = s->n, .n = t->n_choices, .n_common = t->n_common};
        for (size_t i = 0; i < t->n_choices; i++) {
            const struct eval_choice *c = &t->choices[i];
            s->items[s->n++] = (struct eval_sequence){.ids = c->tokens.ids,
                                                      .n_tokens = c->tokens.n,
                                                      .first_scored = t->first_scored,
                                                      .owner = r->n_resumed + k,
                                                      .log_probs = c->log_probs + t->first_scored};
        }
        if (t->misread)
            status = extend(r, t, &r->extended[k], &s->items[s->n - t->n_choices], why);
    }
    return status;
}

static void release(struct run *r)
{
    for (size_t k = 0; r->extended && k < r->sequences.n_groups; k++) {
        free(r->extended[k].ids);
        free(r->extended[k].log_probs);
    }
    free(r->extended);
    free(r->sequences.items);
    free(r->sequences.groups);
}

/** What was read behind the first choice counts for the second. */
static void misread(const struct eval_choice_task *t, const struct extended *e)
{
    struct eval_choice *c = t->choices;
    size_t n = c->tokens.n - t->first_scored;
    memcpy(c[0].log_probs + t->first_scored, e->log_probs, n * sizeof *e->log_probs);
    c[1].log_probs[t->n_common] = e->log_probs[n];
}

static enum status on_group(void *user, size_t g, struct status_why *why)
{
    struct run *r = user;
    struct eval_choice_task *t = &r->choices->tasks[r->n_done];
    enum status status = STATUS_OK;
    if (t->misread)
        misread(t, &r->extended[g]);
    if (r->options->journal)
        status = eval_resume_keep_task(r->options->journal, t, why);
    if (status)
        return status;
    t->done = true;
    r->n_done++;
    if (r->options->task_done)
        r->options->task_done(r->options->user, r->n_done - 1);
    return STATUS_OK;
}

/** Of sequences, as one of tasks. */
static void on_progress(void *user, const struct eval_progress *now)
{
    const struct run *r = user;
    struct eval_progress p = *now;
    p.n_windows_done = r->n_done;
    p.n_windows = r->choices->n;
    if (r->options->progress)
        r->options->progress(r->options->user, &p);
}

/** Tell of the tasks that the journal had. */
static void report_resumed(struct run *r)
{
    if (r->options->journal)
        r->n_resumed = (size_t)eval_journal_n(r->options->journal);
    for (; r->n_done < r->n_resumed; r->n_done++)
        if (r->options->task_done)
            r->options->task_done(r->options->user, r->n_done);
}

enum status eval_choices_memory(struct eval_memory *out, struct eval_choices *choices,
                                const struct eval_choices_run *options, struct status_why *why)
{
    struct run r = {.choices = choices, .options = options};
    struct eval_sequences_run run = {
        .model = options->model,
        .backend = options->backend,
        .batch_tokens = options->batch_tokens,
    };
    *out = (struct eval_memory){0};
    enum status status = make_sequences(&r, why);
    if (!status)
        *out = eval_sequences_memory(&r.sequences, &run);
    release(&r);
    return status;
}

enum status eval_choices_run(struct eval_choices *choices, const struct eval_choices_run *options,
                             struct eval_run_stats *stats, struct status_why *why)
{
    struct run r = {.choices = choices, .options = options};
    struct eval_sequences_run run = {
        .model = options->model,
        .backend = options->backend,
        .batch_tokens = options->batch_tokens,
        .group_done = on_group,
        .progress = on_progress,
        .user = &r,
    };
    double started = base_clock_seconds();
    *stats = (struct eval_run_stats){0};
    report_resumed(&r);
    enum status status = make_sequences(&r, why);
    if (!status)
        status = eval_sequences_run(&r.sequences, &run, stats, why);
    status = eval_resume_end(options->journal, status, why);
    release(&r);
    stats->n_resumed = r.n_resumed;
    stats->n_windows = r.n_done - r.n_resumed;
    stats->seconds = base_clock_seconds() - started;
    return status;
}
