#include "eval/run/shared.h"

#include <stdlib.h>

#include "eval/metrics/compat.h"

double eval_run_worker_bytes(const struct eval_task *task, size_t n_windows)
{
    const struct eval_plan *plan = task->plan;
    double per_input = sizeof(int32_t);
    double per_head = sizeof(struct kern_row_score) + sizeof(struct kern_target_score);
    size_t n_heads = eval_task_n_tables(task);
    if (n_heads > 1)
        per_head += sizeof(struct kern_pair_score);
    double per_scored = sizeof(uint32_t) + sizeof(size_t) + 2 * sizeof(struct kern_target) +
                        (double)n_heads * per_head;
    return (double)n_windows *
           ((double)plan->n_inputs * per_input + (double)plan->n_scored * per_scored +
            (double)(sizeof(struct model_segment) + sizeof(size_t)));
}

static enum status allocate(struct eval_run_worker *w, struct status_why *why)
{
    const struct eval_run_shared *s = w->shared;
    const struct eval_plan *plan = s->task->plan;
    size_t n_inputs = s->max_windows * plan->n_inputs;
    size_t n_scored = s->max_windows * plan->n_scored;
    w->windows = calloc(s->max_windows, sizeof *w->windows);
    w->segments = calloc(s->max_windows, sizeof *w->segments);
    w->tokens = calloc(n_inputs, sizeof *w->tokens);
    w->rows = calloc(n_scored, sizeof *w->rows);
    w->places = calloc(n_scored, sizeof *w->places);
    w->targets = calloc(n_scored, sizeof *w->targets);
    w->row_scores = calloc(s->n_heads * n_scored, sizeof *w->row_scores);
    w->target_scores = calloc(s->n_heads * n_scored, sizeof *w->target_scores);
    bool wants_pairs = s->n_heads > 1;
    if (wants_pairs)
        w->pair_scores = calloc(s->n_heads * n_scored, sizeof *w->pair_scores);
    if ((wants_pairs && !w->pair_scores) || !w->windows || !w->segments || !w->tokens || !w->rows ||
        !w->places || !w->targets || !w->row_scores || !w->target_scores)
        return status_fail(why, STATUS_MEMORY, "no memory for a batch of %zu tokens", n_inputs);
    return STATUS_OK;
}

/* The source's calls one at a time: expect before the batch's turn has come, the others in it. */

static void expect(void *user, size_t first, size_t n_rows)
{
    struct eval_run_worker *w = user;
    const struct eval_row_source *base = w->shared->task->base;
    pthread_mutex_lock(&w->shared->source_lock);
    base->expect(base->user, first, n_rows);
    pthread_mutex_unlock(&w->shared->source_lock);
}

static enum status rows(void *user, size_t first, size_t n_rows, const void **out,
                        struct status_why *why)
{
    struct eval_run_worker *w = user;
    const struct eval_row_source *base = w->shared->task->base;
    enum status status = eval_run_await(w->shared, w->windows[0], why);
    if (status != STATUS_OK)
        return status;
    pthread_mutex_lock(&w->shared->source_lock);
    status = base->rows(base->user, first, n_rows, out, why);
    pthread_mutex_unlock(&w->shared->source_lock);
    return status;
}

static enum status check(void *user, size_t first, size_t n_rows,
                         const struct kern_row_score *scores, struct status_why *why)
{
    struct eval_run_worker *w = user;
    const struct eval_row_source *base = w->shared->task->base;
    pthread_mutex_lock(&w->shared->source_lock);
    enum status status = base->check(base->user, first, n_rows, scores, why);
    pthread_mutex_unlock(&w->shared->source_lock);
    return status;
}

/** In its turn a worker is alone with the sink: it keeps its windows before the turn ends. */
static enum status write_rows(void *user, size_t first, size_t n_rows, const void *from,
                              struct status_why *why)
{
    struct eval_run_worker *w = user;
    const struct eval_row_sink *sink = w->shared->task->sink;
    enum status status = eval_run_await(w->shared, w->windows[0], why);
    return status == STATUS_OK ? sink->write(sink->user, first, n_rows, from, why) : status;
}

/** Put the worker between the scorer, and source and sink of the task. */
static void stand_between(struct eval_run_worker *w, struct eval_scorer_options *scorer)
{
    if (scorer->base) {
        w->source = *scorer->base;
        w->source.user = w;
        w->source.expect = scorer->base->expect ? expect : NULL;
        w->source.rows = rows;
        w->source.check = scorer->base->check ? check : NULL;
        scorer->base = &w->source;
    }
    if (scorer->sink) {
        w->sink =
            (struct eval_row_sink){.kind = scorer->sink->kind, .user = w, .write = write_rows};
        scorer->sink = &w->sink;
    }
}

enum status eval_run_worker_open(struct eval_run_worker *w, struct eval_run_shared *s, size_t i,
                                 const struct eval_scorer_options *scorer, struct status_why *why)
{
    *w = (struct eval_run_worker){.shared = s, .backend = s->task->backends[i]};
    w->cancel = w->backend->cancel;
    struct eval_scorer_options options = *scorer;
    options.progress = eval_run_on_fraction;
    options.progress_user = w;
    stand_between(w, &options);
    enum status status = allocate(w, why);
    if (status == STATUS_OK)
        status = eval_scorer_open(&w->scorer, s->task->model, w->backend, &options, why);
    return status;
}

void eval_run_worker_heed_others(struct eval_run_worker *w)
{
    if (w->shared->task->n_backends > 1)
        kern_set_cancel(w->backend, &w->shared->stop);
}

void eval_run_worker_close(struct eval_run_worker *w)
{
    if (!w->shared)
        return; /* never opened */
    eval_scorer_close(w->scorer);
    kern_set_cancel(w->backend, w->cancel);
    free(w->windows);
    free(w->segments);
    free(w->tokens);
    free(w->rows);
    free(w->places);
    free(w->targets);
    free(w->row_scores);
    free(w->target_scores);
    free(w->pair_scores);
}

/** Lay out the k-th of the batch's windows as its segment. */
static void lay_window(struct eval_run_worker *r, size_t k)
{
    const struct eval_plan *plan = r->shared->task->plan;
    const struct eval_stream *stream = r->shared->task->stream;
    size_t w = r->windows[k], start = k * plan->n_inputs, scored = k * plan->n_scored;
    for (size_t p = 0; p < plan->n_inputs; p++)
        r->tokens[start + p] = eval_plan_input(plan, stream, w, p);
    for (size_t i = 0; i < plan->n_scored; i++) {
        size_t p = plan->first_scored + i;
        r->rows[scored + i] = (uint32_t)(start + p);
        r->places[scored + i] = w * plan->n_scored + i;
        r->targets[scored + i] = (struct kern_target){
            .row = (uint32_t)(scored + i), .token = stream->ids[eval_plan_target(plan, w, p)]};
    }
    r->segments[k] =
        (struct model_segment){.start = start, .n_tokens = plan->n_inputs, .parent = -1};
}

/** The scores of head h in the batch's k-th window, into its table. */
static void record_window(const struct eval_run_worker *r, size_t h, size_t k)
{
    const struct eval_plan *plan = r->shared->task->plan;
    const struct eval_table *table = &r->shared->table[h];
    size_t w = r->windows[k], first = (h * r->n_batch + k) * plan->n_scored;
    bool compat = plan->options.protocol == EVAL_PROTOCOL_STRIDED && plan->options.llama_compat;
    double *log_prob = eval_table_row(table, EVAL_LOG_PROB, w);
    double *rank = eval_table_row(table, EVAL_RANK, w);
    double *entropy = eval_table_row(table, EVAL_ENTROPY, w);
    for (size_t i = 0; i < plan->n_scored; i++) {
        const struct kern_target_score *target = &r->target_scores[first + i];
        const struct kern_row_score *row = &r->row_scores[first + i];
        log_prob[i] = target->log_prob;
        if (compat)
            log_prob[i] = eval_compat_strided_log_prob(target->log_prob, row->log_sum);
        rank[i] = target->rank;
        entropy[i] = row->entropy;
    }
}

/** The same for what compares head h with the base. */
static void record_pairs(const struct eval_run_worker *r, size_t h, size_t k)
{
    size_t n_scored = r->shared->task->plan->n_scored, w = r->windows[k];
    const struct eval_table *table = &r->shared->table[h];
    const struct kern_row_score *base = r->row_scores + k * n_scored;
    const struct kern_row_score *row = r->row_scores + (h * r->n_batch + k) * n_scored;
    const struct kern_pair_score *pair = r->pair_scores + (h * r->n_batch + k) * n_scored;
    for (size_t i = 0; i < n_scored; i++) {
        eval_table_row(table, EVAL_KL, w)[i] = pair[i].kl;
        eval_table_row(table, EVAL_REVERSE_KL, w)[i] = pair[i].reverse_kl;
        eval_table_row(table, EVAL_JS, w)[i] = pair[i].js;
        eval_table_row(table, EVAL_SAME_TOP, w)[i] = row[i].argmax == base[i].argmax;
        eval_table_row(table, EVAL_COMMON_5, w)[i] = pair[i].common_top[1];
        eval_table_row(table, EVAL_COMMON_10, w)[i] = pair[i].common_top[2];
        eval_table_row(table, EVAL_BASE_TOP, w)[i] = -base[i].log_sum;
    }
}

/** Copy the batch's scores into the tables. */
static void record(const struct eval_run_worker *r)
{
    for (size_t k = 0; k < r->n_batch; k++)
        for (size_t h = 0; h < r->shared->n_heads; h++) {
            record_window(r, h, k);
            if (h)
                record_pairs(r, h, k);
        }
}

static enum status evaluate(struct eval_run_worker *w, struct status_why *why)
{
    const struct eval_task *task = w->shared->task;
    for (size_t k = 0; k < w->n_batch; k++)
        lay_window(w, k);
    struct model_batch batch = {
        .tokens = w->tokens,
        .n_tokens = w->n_batch * task->plan->n_inputs,
        .segments = w->segments,
        .n_segments = w->n_batch,
    };
    struct eval_items items = {
        .rows = w->rows,
        .n_rows = w->n_batch * task->plan->n_scored,
        .places = w->places,
        .targets = w->targets,
        .n_targets = w->n_batch * task->plan->n_scored,
        .row_scores = w->row_scores,
        .target_scores = w->target_scores,
        .pair_scores = w->pair_scores,
        .want_js = w->shared->n_heads > 1 && task->want_js,
    };
    struct eval_scorer_times times = {0};
    enum status status = eval_scorer_run(w->scorer, &batch, &items, &times, why);
    if (status != STATUS_OK)
        return status;
    record(w);
    return eval_run_keep(w->shared, w, &times, why);
}

void *eval_run_worker_work(void *worker)
{
    struct eval_run_worker *w = worker;
    struct status_why why = {""};
    enum status status = STATUS_OK;
    while (status == STATUS_OK && eval_run_deal(w->shared, w))
        status = evaluate(w, &why);
    if (status != STATUS_OK)
        eval_run_fail(w->shared, status, &why);
    return NULL;
}
