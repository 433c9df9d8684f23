#include "eval/run.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "eval/clock.h"
#include "eval/compat.h"
#include "eval/memory.h"
#include "eval/resume.h"

/** A run: the arrays of a batch, sized for the largest, and where the run stands. */
struct run {
    const struct eval_task *task;
    const struct eval_run_options *options;
    struct eval_table *table; /* [n_heads] */
    size_t n_heads;           /* one for each table; arrays by head begin with the base */
    struct eval_run_stats *stats;
    struct eval_scorer *scorer;
    size_t max_windows; /* of a batch */
    size_t *windows;    /* [max_windows]: which ones the batch holds */
    int32_t *tokens;    /* [max_windows * n_inputs] */
    struct model_segment *segments;
    uint32_t *rows; /* [max_windows * n_scored], and so the next two */
    size_t *places;
    struct kern_target *targets;
    struct kern_row_score *row_scores; /* [n_heads * max_windows * n_scored], and so the rest */
    struct kern_target_score *target_scores;
    struct kern_pair_score *pair_scores; /* NULL without candidates */
    size_t n_batch;                      /* windows of the batch at work */
    size_t n_to_do, n_done;              /* windows of this run */
    size_t n_done_before;                /* windows that the table had already */
    double started;
};

static size_t divide_up(size_t a, size_t b)
{
    return a / b + (a % b != 0);
}

/** Windows of the largest batch. Rows of a batch are uint32, so that is the end in any case. */
static size_t largest_batch(const struct eval_task *task, const struct eval_run_options *options)
{
    const struct eval_plan *plan = task->plan;
    size_t n = divide_up(options->batch_tokens, plan->window);
    size_t most = (size_t)UINT32_MAX / (plan->n_inputs + 1);
    n = n < most ? n : most;
    return n < plan->n_windows ? n : plan->n_windows;
}

size_t eval_run_batch_tokens(const struct eval_task *task, const struct eval_run_options *options)
{
    return largest_batch(task, options) * task->plan->n_inputs;
}

static struct eval_scorer_options scorer_options(const struct eval_task *task,
                                                 const struct eval_run_options *options)
{
    return (struct eval_scorer_options){
        .max_batch = eval_run_batch_tokens(task, options),
        .max_rows = largest_batch(task, options) * task->plan->n_scored,
        .max_segment = task->plan->n_inputs,
        .tile_tokens = options->tile_tokens,
        .candidates = task->candidates,
        .n_candidates = task->n_candidates,
        .base = task->base,
        .sink = task->sink,
    };
}

size_t eval_task_n_tables(const struct eval_task *task)
{
    return (task->base ? 2 : 1) + task->n_candidates;
}

/** Bytes of the arrays of a batch. */
static double batch_bytes(const struct eval_task *task, size_t n_windows)
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

struct eval_memory eval_run_memory(const struct eval_task *task,
                                   const struct eval_run_options *options)
{
    const struct eval_plan *plan = task->plan;
    struct eval_scorer_options scorer = scorer_options(task, options);
    const struct gguf_file *file = model_file(task->model);
    struct eval_memory m = {.weights = eval_memory_mapped(file),
                            .present = eval_memory_present(file)};
    for (size_t i = 0; i < task->n_candidates; i++) {
        const struct gguf_file *other = model_file(task->candidates[i]);
        m.weights += eval_memory_mapped(other);
        m.present -= eval_memory_resident(other);
    }
    m.scorer = eval_scorer_bytes(task->model, task->backend, &scorer);
    m.scores = eval_table_bytes(plan->n_windows, plan->n_scored) +
               (double)(eval_task_n_tables(task) - 1) *
                   eval_table_pair_bytes(plan->n_windows, plan->n_scored) +
               batch_bytes(task, largest_batch(task, options)) + EVAL_MEMORY_SMALL_THINGS;
    m.total = m.weights + m.present + m.scorer + m.scores;
    m.on_device = kern_describe(task->backend).own_memory;
    return m;
}

/** Ids come from a vocabulary that may be longer than the matrices of a broken file. */
static enum status check_ids(const struct eval_task *task, const struct model *model,
                             struct status_why *why)
{
    size_t n_vocab = model_hparams(model)->n_vocab;
    for (size_t i = 0; i < task->stream->n; i++) {
        int32_t id = task->stream->ids[i];
        if (id < 0 || (size_t)id >= n_vocab)
            return status_fail(why, STATUS_FORMAT,
                               "%s: token %zu of the text has the id %d; expected ids below %zu, "
                               "the rows of the embedding",
                               gguf_path(model_file(model)), i, id, n_vocab);
    }
    if (task->plan->bos_use != EVAL_BOS_NONE && (size_t)task->plan->options.bos >= n_vocab)
        return status_fail(why, STATUS_FORMAT, "%s: BOS has the id %d; expected less than %zu",
                           gguf_path(model_file(model)), task->plan->options.bos, n_vocab);
    return STATUS_OK;
}

/** All models as long as each other is what eval_check_same_vocab sees to; base rows are not. */
static enum status check_base(const struct eval_task *task, struct status_why *why)
{
    size_t n_vocab = model_head(task->model)->n_rows;
    if (task->base && task->base->n_vocab != n_vocab)
        return status_fail(why, STATUS_USAGE,
                           "the base has a vocabulary of %zu tokens, that of %s has %zu",
                           task->base->n_vocab, gguf_path(model_file(task->model)), n_vocab);
    return STATUS_OK;
}

static enum status allocate(struct run *r, struct status_why *why)
{
    const struct eval_plan *plan = r->task->plan;
    size_t n_inputs = r->max_windows * plan->n_inputs;
    size_t n_scored = r->max_windows * plan->n_scored;
    r->windows = calloc(r->max_windows, sizeof *r->windows);
    r->segments = calloc(r->max_windows, sizeof *r->segments);
    r->tokens = calloc(n_inputs, sizeof *r->tokens);
    r->rows = calloc(n_scored, sizeof *r->rows);
    r->places = calloc(n_scored, sizeof *r->places);
    r->targets = calloc(n_scored, sizeof *r->targets);
    r->row_scores = calloc(r->n_heads * n_scored, sizeof *r->row_scores);
    r->target_scores = calloc(r->n_heads * n_scored, sizeof *r->target_scores);
    bool wants_pairs = r->n_heads > 1;
    if (wants_pairs)
        r->pair_scores = calloc(r->n_heads * n_scored, sizeof *r->pair_scores);
    if ((wants_pairs && !r->pair_scores) || !r->windows || !r->segments || !r->tokens || !r->rows ||
        !r->places || !r->targets || !r->row_scores || !r->target_scores)
        return status_fail(why, STATUS_MEMORY, "no memory for a batch of %zu tokens", n_inputs);
    return STATUS_OK;
}

static void release(struct run *r)
{
    eval_scorer_close(r->scorer);
    free(r->windows);
    free(r->segments);
    free(r->tokens);
    free(r->rows);
    free(r->places);
    free(r->targets);
    free(r->row_scores);
    free(r->target_scores);
    free(r->pair_scores);
}

/** The scorer's share of a batch as the run's share of all. */
static void on_fraction(void *user, double fraction)
{
    const struct run *r = user;
    if (!r->options->progress)
        return;
    struct eval_progress p = {
        .n_windows_done = r->n_done_before + r->n_done,
        .n_windows = r->table->n_windows,
        .fraction = ((double)r->n_done + fraction * (double)r->n_batch) / (double)r->n_to_do,
        .seconds = eval_clock_seconds() - r->started,
    };
    p.seconds_left = p.fraction > 0 ? p.seconds * (1 - p.fraction) / p.fraction : (double)NAN;
    r->options->progress(r->options->user, &p);
}

/** Put window w into the batch as its next segment. */
static void add_window(struct run *r, size_t w)
{
    const struct eval_plan *plan = r->task->plan;
    const struct eval_stream *stream = r->task->stream;
    size_t start = r->n_batch * plan->n_inputs;
    size_t scored = r->n_batch * plan->n_scored;
    for (size_t p = 0; p < plan->n_inputs; p++)
        r->tokens[start + p] = eval_plan_input(plan, stream, w, p);
    for (size_t i = 0; i < plan->n_scored; i++) {
        size_t p = plan->first_scored + i;
        r->rows[scored + i] = (uint32_t)(start + p);
        r->places[scored + i] = w * plan->n_scored + i;
        r->targets[scored + i] = (struct kern_target){
            .row = (uint32_t)(scored + i), .token = stream->ids[eval_plan_target(plan, w, p)]};
    }
    r->segments[r->n_batch] =
        (struct model_segment){.start = start, .n_tokens = plan->n_inputs, .parent = -1};
    r->windows[r->n_batch++] = w;
}

/** The scores of head h in the batch's k-th window, into its table. */
static void record_window(struct run *r, size_t h, size_t k)
{
    const struct eval_plan *plan = r->task->plan;
    const struct eval_table *table = &r->table[h];
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
static void record_pairs(struct run *r, size_t h, size_t k)
{
    size_t n_scored = r->task->plan->n_scored, w = r->windows[k];
    const struct eval_table *table = &r->table[h];
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
static void record(struct run *r)
{
    for (size_t k = 0; k < r->n_batch; k++)
        for (size_t h = 0; h < r->n_heads; h++) {
            record_window(r, h, k);
            if (h)
                record_pairs(r, h, k);
            r->table[h].done[r->windows[k]] = true;
        }
}

/** Append the batch, whose windows follow each other, to the journal. */
static enum status keep(struct run *r, struct status_why *why)
{
    if (!r->options->journal)
        return STATUS_OK;
    struct eval_resume resume = {
        .journal = r->options->journal,
        .tables = r->table,
        .n_tables = r->n_heads,
        .sink = r->task->sink,
    };
    return eval_resume_keep(&resume, r->windows[0], r->n_batch, why);
}

/** Tell of the windows that the journal had. */
static void report_resumed(struct run *r)
{
    if (r->options->journal)
        r->stats->n_resumed = (size_t)eval_journal_n(r->options->journal);
    for (size_t w = 0; w < r->stats->n_resumed && r->options->window_done; w++)
        r->options->window_done(r->options->user, w);
}

static enum status evaluate(struct run *r, struct status_why *why)
{
    const struct eval_plan *plan = r->task->plan;
    struct model_batch batch = {
        .tokens = r->tokens,
        .n_tokens = r->n_batch * plan->n_inputs,
        .segments = r->segments,
        .n_segments = r->n_batch,
    };
    struct eval_items items = {
        .rows = r->rows,
        .n_rows = r->n_batch * plan->n_scored,
        .places = r->places,
        .targets = r->targets,
        .n_targets = r->n_batch * plan->n_scored,
        .row_scores = r->row_scores,
        .target_scores = r->target_scores,
        .pair_scores = r->pair_scores,
        .want_js = r->pair_scores && r->task->want_js,
    };
    enum status status = eval_scorer_run(r->scorer, &batch, &items, &r->stats->times, why);
    if (status)
        return status;
    r->stats->n_batches++;
    r->stats->n_windows += r->n_batch;
    r->stats->n_inputs += batch.n_tokens;
    record(r);
    status = keep(r, why);
    if (status)
        return status;
    r->n_done += r->n_batch;
    for (size_t k = 0; k < r->n_batch && r->options->window_done; k++)
        r->options->window_done(r->options->user, r->windows[k]);
    return STATUS_OK;
}

static enum status run_batches(struct run *r, struct status_why *why)
{
    size_t w = 0;
    enum status status = STATUS_OK;
    while (r->n_done < r->n_to_do && !status) {
        r->n_batch = 0;
        for (; w < r->table->n_windows && r->n_batch < r->max_windows; w++)
            if (!r->table->done[w])
                add_window(r, w);
        status = evaluate(r, why);
    }
    return status;
}

enum status eval_run(const struct eval_task *task, const struct eval_run_options *options,
                     struct eval_table *table, struct eval_run_stats *stats, struct status_why *why)
{
    assert(options->batch_tokens > 0);
    struct eval_run_stats own;
    struct run r = {
        .task = task, .options = options, .table = table, .n_heads = eval_task_n_tables(task)};
    r.stats = stats ? stats : &own;
    r.started = eval_clock_seconds();
    r.max_windows = largest_batch(task, options);
    *r.stats = (struct eval_run_stats){.max_batch_tokens = eval_run_batch_tokens(task, options)};
    for (size_t w = 0; w < table->n_windows; w++)
        r.n_done_before += table->done[w];
    r.n_to_do = table->n_windows - r.n_done_before;

    struct eval_scorer_options scorer = scorer_options(task, options);
    scorer.progress = on_fraction;
    scorer.progress_user = &r;
    enum status status = check_base(task, why);
    if (!status)
        status = check_ids(task, task->model, why);
    for (size_t i = 0; i < task->n_candidates && !status; i++)
        status = check_ids(task, task->candidates[i], why);
    if (!status)
        status = allocate(&r, why);
    if (!status)
        status = eval_scorer_open(&r.scorer, task->model, task->backend, &scorer, why);
    if (!status) {
        report_resumed(&r);
        status = run_batches(&r, why);
    }
    status = eval_resume_end(options->journal, status, why);
    release(&r);
    r.stats->seconds = eval_clock_seconds() - r.started;
    return status;
}
