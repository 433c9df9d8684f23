/* Tasks through the model: as many per batch as fit, each a prefix with its endings. */
#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "eval/choice.h"
#include "eval/clock.h"
#include "eval/resume.h"

/** What a task, or a batch of tasks, takes. */
struct sizes {
    size_t n_tokens, n_segments, n_rows, n_targets;
};

/** A run: the arrays of a batch, sized for the largest, and where the run stands. */
struct run {
    struct eval_choices *choices;
    const struct eval_choices_run *options;
    struct eval_run_stats *stats;
    struct eval_scorer *scorer;
    struct sizes max, n; /* of any batch; of the batch at work */
    int32_t *tokens;
    struct model_segment *segments;
    uint32_t *rows;
    struct kern_target *targets;
    double **places; /* [targets]: where each log-probability goes */
    struct kern_row_score *row_scores;
    struct kern_target_score *target_scores;
    double n_total, n_done, started; /* tokens of all batches, of those done */
    double n_at_work;                /* tokens of the batch */
    size_t n_tasks_done;             /* those that the journal had included */
};

/** Tokens of a choice that its own segment evaluates: not the last, which predicts nothing. */
static size_t n_own(const struct eval_choice_task *t, size_t i)
{
    return t->choices[i].tokens.n - t->n_common - 1 + (t->misread && i == 0);
}

static struct sizes task_sizes(const struct eval_choice_task *t)
{
    size_t shared = t->n_common ? t->n_common - t->first_scored + 1 : 0;
    struct sizes s = {.n_tokens = t->n_common, .n_segments = t->n_common > 0, .n_rows = shared};
    s.n_targets = shared ? shared - 1 + t->n_choices : 0;
    for (size_t i = 0; i < t->n_choices; i++) {
        size_t n = n_own(t, i);
        s.n_tokens += n;
        s.n_segments += n > 0;
        s.n_rows += n;
        s.n_targets += n;
    }
    return s;
}

static struct sizes sum(struct sizes a, struct sizes b)
{
    return (struct sizes){a.n_tokens + b.n_tokens, a.n_segments + b.n_segments, a.n_rows + b.n_rows,
                          a.n_targets + b.n_targets};
}

/** The end of the batch that begins with task `from`; *size: what it takes. */
static size_t batch_end(const struct run *r, size_t from, struct sizes *size)
{
    *size = task_sizes(&r->choices->tasks[from]);
    size_t end = from + 1;
    for (; end < r->choices->n; end++) {
        struct sizes with = sum(*size, task_sizes(&r->choices->tasks[end]));
        if (with.n_tokens > r->options->batch_tokens)
            break;
        *size = with;
    }
    return end;
}

static void keep_larger(size_t *max, size_t n)
{
    *max = n > *max ? n : *max;
}

static void measure(struct run *r)
{
    struct sizes s;
    for (size_t from = r->n_tasks_done; from < r->choices->n;) {
        from = batch_end(r, from, &s);
        keep_larger(&r->max.n_tokens, s.n_tokens);
        keep_larger(&r->max.n_segments, s.n_segments);
        keep_larger(&r->max.n_rows, s.n_rows);
        keep_larger(&r->max.n_targets, s.n_targets);
        r->n_total += (double)s.n_tokens;
    }
}

static enum status check_ids(const struct run *r, struct status_why *why)
{
    uint32_t n_vocab = model_hparams(r->options->model)->n_vocab;
    for (size_t k = 0; k < r->choices->n; k++)
        for (size_t i = 0; i < r->choices->tasks[k].n_choices; i++) {
            const struct model_tokens *tokens = &r->choices->tasks[k].choices[i].tokens;
            for (size_t j = 0; j < tokens->n; j++)
                if ((uint32_t)tokens->ids[j] >= n_vocab)
                    return status_fail(why, STATUS_FORMAT,
                                       "the vocabulary has token %d, the model only %u",
                                       tokens->ids[j], n_vocab);
        }
    return STATUS_OK;
}

static enum status allocate(struct run *r, struct status_why *why)
{
    r->tokens = malloc(r->max.n_tokens * sizeof *r->tokens);
    r->segments = malloc(r->max.n_segments * sizeof *r->segments);
    r->rows = malloc(r->max.n_rows * sizeof *r->rows);
    r->targets = malloc(r->max.n_targets * sizeof *r->targets);
    r->places = malloc(r->max.n_targets * sizeof *r->places);
    r->row_scores = malloc(r->max.n_rows * sizeof *r->row_scores);
    r->target_scores = malloc(r->max.n_targets * sizeof *r->target_scores);
    if (!r->tokens || !r->segments || !r->rows || !r->targets || !r->places || !r->row_scores ||
        !r->target_scores)
        return status_fail(why, STATUS_MEMORY, "no memory for a batch of %zu tokens",
                           r->max.n_tokens);
    return STATUS_OK;
}

static void release(struct run *r)
{
    eval_scorer_close(r->scorer);
    free(r->tokens);
    free(r->segments);
    free(r->rows);
    free(r->targets);
    free(r->places);
    free(r->row_scores);
    free(r->target_scores);
}

/** The last row of the batch predicts this token of this choice. */
static void add_target(struct run *r, struct eval_choice *c, size_t token)
{
    r->targets[r->n.n_targets] =
        (struct kern_target){.row = (uint32_t)(r->n.n_rows - 1), .token = c->tokens.ids[token]};
    r->places[r->n.n_targets++] = &c->log_probs[token];
}

/** Tokens [from, to) of a choice as the next segment. */
static void add_segment(struct run *r, const struct eval_choice *c, size_t from, size_t to,
                        ptrdiff_t parent)
{
    r->segments[r->n.n_segments++] = (struct model_segment){
        .start = r->n.n_tokens,
        .n_tokens = to - from,
        .first_position = (int32_t)from,
        .parent = parent,
    };
    for (size_t i = from; i < to; i++)
        r->tokens[r->n.n_tokens++] = c->tokens.ids[i];
}

static void add_row(struct run *r, size_t token_of_batch)
{
    r->rows[r->n.n_rows++] = (uint32_t)token_of_batch;
}

static void add_parent(struct run *r, struct eval_choice_task *t)
{
    size_t start = r->n.n_tokens;
    add_segment(r, &t->choices[0], 0, t->n_common, -1);
    for (size_t p = t->first_scored - 1; p < t->n_common; p++) {
        add_row(r, start + p);
        if (p + 1 < t->n_common)
            add_target(r, &t->choices[0], p + 1);
    }
    for (size_t i = 0; i < t->n_choices; i++)
        if (!(t->misread && i == 1))
            add_target(r, &t->choices[i], t->n_common);
}

static void add_task(struct run *r, struct eval_choice_task *t)
{
    ptrdiff_t parent = -1;
    if (t->n_common) {
        parent = (ptrdiff_t)r->n.n_segments;
        add_parent(r, t);
    }
    for (size_t i = 0; i < t->n_choices; i++) {
        struct eval_choice *c = &t->choices[i];
        size_t n = n_own(t, i), start = r->n.n_tokens;
        if (n == 0)
            continue;
        add_segment(r, c, t->n_common, t->n_common + n, parent);
        for (size_t k = 0; k < n; k++) {
            add_row(r, start + k);
            size_t next = t->n_common + k + 1;
            if (next < c->tokens.n)
                add_target(r, c, next);
            else
                add_target(r, &t->choices[1], t->n_common); /* what a misread task reads there */
        }
    }
}

static enum status finish_task(struct run *r, size_t k, struct status_why *why)
{
    struct eval_journal *journal = r->options->journal;
    enum status status = STATUS_OK;
    if (journal)
        status = eval_resume_keep_task(journal, &r->choices->tasks[k], why);
    if (status)
        return status;
    r->choices->tasks[k].done = true;
    r->n_tasks_done++;
    if (r->options->task_done)
        r->options->task_done(r->options->user, k);
    return STATUS_OK;
}

/** Hand the batch's scores to its tasks and the journal, then tell of them. */
static enum status record(struct run *r, size_t from, size_t end, struct status_why *why)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < r->n.n_targets; i++)
        *r->places[i] = r->target_scores[i].log_prob;
    for (size_t k = from; k < end && !status; k++) {
        struct eval_choice_task *t = &r->choices->tasks[k];
        for (size_t i = 1; i < t->n_choices; i++)
            for (size_t j = t->first_scored; j < t->n_common; j++)
                t->choices[i].log_probs[j] = t->choices[0].log_probs[j];
        status = finish_task(r, k, why);
    }
    return status;
}

/** Tell of the tasks that the journal had. */
static void report_resumed(struct run *r)
{
    if (r->options->journal)
        r->stats->n_resumed = (size_t)eval_journal_n(r->options->journal);
    for (; r->n_tasks_done < r->stats->n_resumed; r->n_tasks_done++)
        if (r->options->task_done)
            r->options->task_done(r->options->user, r->n_tasks_done);
}

static void on_fraction(void *user, double fraction)
{
    const struct run *r = user;
    if (!r->options->progress)
        return;
    struct eval_progress p = {
        .n_windows_done = r->n_tasks_done,
        .n_windows = r->choices->n,
        .fraction = (r->n_done + fraction * r->n_at_work) / r->n_total,
        .seconds = eval_clock_seconds() - r->started,
    };
    p.seconds_left = p.fraction > 0 ? p.seconds * (1 - p.fraction) / p.fraction : (double)NAN;
    r->options->progress(r->options->user, &p);
}

static enum status run_batch(struct run *r, size_t from, size_t end, struct status_why *why)
{
    r->n = (struct sizes){0};
    for (size_t k = from; k < end; k++)
        add_task(r, &r->choices->tasks[k]);
    r->n_at_work = (double)r->n.n_tokens;
    struct model_batch batch = {r->tokens, r->n.n_tokens, r->segments, r->n.n_segments};
    struct eval_items items = {
        .rows = r->rows,
        .n_rows = r->n.n_rows,
        .targets = r->targets,
        .n_targets = r->n.n_targets,
        .row_scores = r->row_scores,
        .target_scores = r->target_scores,
    };
    enum status status = eval_scorer_run(r->scorer, &batch, &items, &r->stats->times, why);
    if (status)
        return status;
    r->n_done += r->n_at_work;
    r->stats->n_batches++;
    r->stats->n_windows += end - from;
    r->stats->n_inputs += r->n.n_tokens;
    return record(r, from, end, why);
}

/** The tasks that are not done. */
static enum status run_batches(struct run *r, struct status_why *why)
{
    measure(r);
    r->stats->max_batch_tokens = r->max.n_tokens;
    size_t from = r->n_tasks_done, n = r->choices->n, end;
    if (from == n)
        return STATUS_OK;
    struct eval_scorer_options scorer = {
        .max_batch = r->max.n_tokens,
        .max_rows = r->max.n_rows,
        .max_segment = r->choices->n_tokens_max,
        .progress = on_fraction,
        .progress_user = r,
    };
    enum status status = allocate(r, why);
    if (!status)
        status = eval_scorer_open(&r->scorer, r->options->model, r->options->backend, &scorer, why);
    struct sizes size;
    for (; from < n && !status; from = end) {
        end = batch_end(r, from, &size);
        status = run_batch(r, from, end, why);
    }
    return status;
}

enum status eval_choices_run(struct eval_choices *choices, const struct eval_choices_run *options,
                             struct eval_run_stats *stats, struct status_why *why)
{
    struct run r = {.choices = choices, .options = options, .stats = stats};
    r.started = eval_clock_seconds();
    *stats = (struct eval_run_stats){0};
    enum status status = check_ids(&r, why);
    if (!status) {
        report_resumed(&r);
        status = run_batches(&r, why);
    }
    status = eval_resume_end(options->journal, status, why);
    release(&r);
    stats->seconds = eval_clock_seconds() - r.started;
    return status;
}
