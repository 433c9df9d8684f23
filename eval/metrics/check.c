#include "eval/metrics/check.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"
#include "kernels/scoring.h"

/* Exact rows that are recorded at a time; whole groups of rows, which the kernels like. */
enum { RECORD_BYTES = 32 << 20, ROW_GROUP = 32 };

/** What rounding may leave below 0 in a sum that is 0 or more. */
static const double rounding = 1e-9;

/** What is kept of a row of the plan, beside the tables. */
struct row {
    double log_sum; /* ln of what the probabilities of its record add up to */
    double top;     /* ln of the highest exact probability */
    struct eval_check_floor floor;
};

/** Room for some rows, recorded and scored. */
struct scratch {
    size_t max_rows;
    float **hidden;    /* [n_backends], on each of them: [max_rows, K] */
    uint16_t *records; /* [max_rows, kern_record_codes(V)], and so the rest: */
    struct kern_target *targets;
    struct kern_row_score *rows; /* [2 * max_rows], the record's first */
    struct kern_target_score *target_scores;
    struct kern_pair_score *pairs;
};

struct eval_check {
    struct eval_check_task task;
    struct eval_row_source source;
    struct eval_row_sink sink;
    struct row *rows; /* of the plan */
    struct scratch scratch;
};

static size_t n_vocab(const struct eval_check *c)
{
    return model_head(c->task.model)->n_rows;
}

static size_t record_bytes(const struct eval_check *c)
{
    return kern_record_codes(n_vocab(c)) * sizeof(uint16_t);
}

static size_t hidden_bytes(const struct eval_check *c)
{
    return model_head(c->task.model)->n_cols * sizeof(float);
}

static void expect(void *user, size_t first, size_t n_rows)
{
    const struct eval_check *c = user;
    if (c->task.recorded->expect)
        c->task.recorded->expect(c->task.recorded->user, first, n_rows);
}

static enum status take_rows(void *user, size_t first, size_t n_rows, const void **rows,
                             struct status_why *why)
{
    const struct eval_check *c = user;
    return c->task.recorded->rows(c->task.recorded->user, first, n_rows, rows, why);
}

/** The scores of the records show what the tables do not keep: the sum of the probabilities. */
static enum status check_rows(void *user, size_t first, size_t n_rows,
                              const struct kern_row_score *scores, struct status_why *why)
{
    struct eval_check *c = user;
    const struct eval_row_source *recorded = c->task.recorded;
    for (size_t i = 0; i < n_rows; i++)
        c->rows[first + i].log_sum = scores[i].max_logit + scores[i].log_sum;
    return recorded->check ? recorded->check(recorded->user, first, n_rows, scores, why)
                           : STATUS_OK;
}

static enum status unchanged(void *user, struct status_why *why)
{
    const struct eval_row_source *recorded = ((const struct eval_check *)user)->task.recorded;
    return recorded->unchanged ? recorded->unchanged(recorded->user, why) : STATUS_OK;
}

/** The room for hidden rows on one of the backends. */
static float *hidden_on(const struct eval_check *c, const struct kern_backend *backend)
{
    size_t i = 0;
    while (c->task.backends[i] != backend)
        i++;
    return c->scratch.hidden[i];
}

/** Record hidden rows on a backend, and compare them with what was recorded. */
static enum status score_own(struct eval_check *c, struct kern_backend *backend,
                             const float *hidden, size_t first, size_t n_rows,
                             struct status_why *why)
{
    struct scratch *s = &c->scratch;
    const struct eval_plan *plan = c->task.plan;
    for (size_t i = 0; i < n_rows; i++) {
        size_t w = (first + i) / plan->n_scored, p = (first + i) % plan->n_scored;
        size_t target = eval_plan_target(plan, w, plan->first_scored + p);
        s->targets[i] = (struct kern_target){(uint32_t)i, c->task.stream->ids[target]};
    }
    struct kern_recorded recorded = {s->records, kern_record_codes(n_vocab(c)), -(double)INFINITY};
    struct kern_head heads[2] = {{.recorded = &recorded}, model_kern_head(c->task.model)};
    heads[1].hidden = hidden;
    struct kern_record record = {.head = heads[1],
                                 .n_rows = n_rows,
                                 .records = s->records,
                                 .stride = recorded.stride,
                                 .reach = (float)c->task.reach};
    struct kern_score score = {
        .n_heads = 2,
        .heads = heads,
        .n_rows = n_rows,
        .n_targets = n_rows,
        .targets = s->targets,
        .rows = s->rows,
        .target_scores = s->target_scores,
        .pairs = s->pairs,
    };
    enum status status = kern_record(backend, &record, why);
    return status ? status : kern_score(backend, &score, why);
}

/** KL(q || p / sum p) from KL(q || p) and ln sum p, without what rounding leaves below 0. */
static double renormalised(double reverse_kl, double log_sum)
{
    double kl = reverse_kl + log_sum;
    return kl < 0 && kl >= -rounding ? 0 : kl;
}

static enum status take_hidden(void *user, struct kern_backend *backend, size_t first,
                               size_t n_rows, const void *rows, struct status_why *why)
{
    struct eval_check *c = user;
    const struct scratch *s = &c->scratch;
    float *hidden = hidden_on(c, backend);
    enum status status = STATUS_OK;
    for (size_t done = 0, n; done < n_rows && !status; done += n) {
        n = n_rows - done < s->max_rows ? n_rows - done : s->max_rows;
        status = kern_upload(backend, hidden, (const char *)rows + done * hidden_bytes(c),
                             n * hidden_bytes(c), why);
        if (!status)
            status = score_own(c, backend, hidden, first + done, n, why);
        for (size_t i = 0; i < n && !status; i++) {
            struct row *row = &c->rows[first + done + i];
            row->top = -s->rows[n + i].log_sum;
            row->floor.kld =
                renormalised(s->pairs[n + i].reverse_kl, s->rows[i].max_logit + s->rows[i].log_sum);
            row->floor.nll = s->target_scores[n + i].log_prob - s->target_scores[i].log_prob;
        }
    }
    return status;
}

/* What is kept of a row is all numbers. */
enum { ROW_DOUBLES = sizeof(struct row) / sizeof(double) };

static enum status save_rows(void *user, size_t w, double *state, struct status_why *why)
{
    (void)why;
    const struct eval_check *c = user;
    size_t n = c->task.plan->n_scored;
    memcpy(state, c->rows + w * n, n * sizeof *c->rows);
    return STATUS_OK;
}

static enum status restore_rows(void *user, size_t w, const double *state, bool *restored,
                                struct status_why *why)
{
    (void)why;
    struct eval_check *c = user;
    size_t n = c->task.plan->n_scored;
    memcpy(c->rows + w * n, state, n * sizeof *c->rows);
    *restored = true;
    return STATUS_OK;
}

static enum status allocate(struct eval_check *c, struct status_why *why)
{
    struct scratch *s = &c->scratch;
    size_t n = RECORD_BYTES / record_bytes(c) / ROW_GROUP * ROW_GROUP;
    n = n > EVAL_SLAB_ROWS ? EVAL_SLAB_ROWS : n;
    s->max_rows = n ? n : ROW_GROUP;
    size_t n_rows = c->task.plan->n_windows * c->task.plan->n_scored;
    c->rows = calloc(n_rows + 1, sizeof *c->rows);
    s->records = malloc(s->max_rows * record_bytes(c));
    s->targets = calloc(s->max_rows, sizeof *s->targets);
    s->rows = calloc(2 * s->max_rows, sizeof *s->rows);
    s->target_scores = calloc(2 * s->max_rows, sizeof *s->target_scores);
    s->pairs = calloc(2 * s->max_rows, sizeof *s->pairs);
    s->hidden = calloc(c->task.n_backends, sizeof *s->hidden);
    if (!c->rows || !s->records || !s->targets || !s->rows || !s->target_scores || !s->pairs ||
        !s->hidden)
        return status_fail(why, STATUS_MEMORY, "no memory to check %zu rows", n_rows);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < c->task.n_backends && !status; i++) {
        void *hidden = NULL;
        status = kern_alloc(c->task.backends[i], &hidden, s->max_rows * hidden_bytes(c), why);
        s->hidden[i] = hidden;
    }
    return status;
}

/** Bytes of the scratch, and of the rows that are kept. */
static double own_bytes(const struct eval_check *c)
{
    double n = (double)c->task.n_backends;
    double per_row = (double)record_bytes(c) + n * (double)hidden_bytes(c) +
                     sizeof(struct kern_target) +
                     2 * (sizeof(struct kern_row_score) + sizeof(struct kern_target_score) +
                          sizeof(struct kern_pair_score));
    struct kern_record record = {.head = model_kern_head(c->task.model),
                                 .n_rows = c->scratch.max_rows};
    return (double)c->scratch.max_rows * per_row +
           n * (double)kern_record_bytes(c->task.backends[0], &record) +
           (double)(c->task.plan->n_windows * c->task.plan->n_scored) * sizeof(struct row);
}

enum status eval_check_open(struct eval_check **out, const struct eval_check_task *task,
                            struct status_why *why)
{
    assert(task->recorded->kind == EVAL_ROWS_CODES);
    *out = NULL;
    struct eval_check *c = calloc(1, sizeof *c);
    if (!c)
        return status_fail(why, STATUS_MEMORY, "no memory for a check");
    c->task = *task;
    enum status status = allocate(c, why);
    if (status) {
        eval_check_close(c);
        return status;
    }
    c->source = *task->recorded;
    c->source.user = c;
    c->source.expect = expect;
    c->source.rows = take_rows;
    c->source.check = check_rows;
    c->source.unchanged = unchanged;
    c->source.n_bytes += own_bytes(c);
    c->sink = (struct eval_row_sink){.kind = EVAL_ROWS_HIDDEN,
                                     .user = c,
                                     .write = take_hidden,
                                     .n_state = ROW_DOUBLES * task->plan->n_scored,
                                     .is_all_state = true,
                                     .save = save_rows,
                                     .restore = restore_rows};
    *out = c;
    return STATUS_OK;
}

void eval_check_close(struct eval_check *c)
{
    if (!c)
        return;
    struct scratch *s = &c->scratch;
    for (size_t i = 0; s->hidden && i < c->task.n_backends; i++)
        kern_free(c->task.backends[i], s->hidden[i]);
    free(s->hidden);
    free(s->records);
    free(s->targets);
    free(s->rows);
    free(s->target_scores);
    free(s->pairs);
    free(c->rows);
    free(c);
}

struct eval_models eval_check_models(const struct eval_check *c)
{
    return (struct eval_models){
        .model = c->task.model,
        .backends = c->task.backends,
        .n_backends = c->task.n_backends,
        .base = &c->source,
        .sink = &c->sink,
    };
}

void eval_check_window(const struct eval_check *c, struct eval_table tables[2], size_t w)
{
    size_t n = c->task.plan->n_scored;
    for (size_t k = 0; k < EVAL_N_COLUMNS * n; k++) {
        double *recorded = eval_table_row(&tables[0], (enum eval_column)(k / n), w) + k % n;
        double *exact = eval_table_row(&tables[1], (enum eval_column)(k / n), w) + k % n;
        double of_record = *recorded;
        *recorded = *exact;
        *exact = of_record;
    }
    double *kl = eval_table_row(&tables[1], EVAL_KL, w);
    double *reverse = eval_table_row(&tables[1], EVAL_REVERSE_KL, w);
    double *top = eval_table_row(&tables[1], EVAL_BASE_TOP, w);
    for (size_t i = 0; i < n; i++) {
        const struct row *row = &c->rows[w * n + i];
        double of_record = kl[i] * exp(-row->log_sum); /* KL(r || p), but for ln sum r */
        kl[i] = renormalised(reverse[i], row->log_sum);
        reverse[i] = renormalised(of_record, -row->log_sum);
        top[i] = row->top;
    }
}

struct eval_check_floor eval_check_floor_of(const struct eval_check *c, size_t w, size_t i)
{
    return c->rows[w * c->task.plan->n_scored + i].floor;
}

/** A running mean square and maximum. */
struct spread {
    struct base_moments squares;
    double max;
};

static void add_difference(struct spread *s, double x)
{
    base_moments_add(&s->squares, x * x);
    s->max = fabs(x) > s->max ? fabs(x) : s->max;
}

static struct eval_check_nll summary_of(const struct spread *s)
{
    return (struct eval_check_nll){sqrt(base_moments_mean(&s->squares)), s->max};
}

enum status eval_check_summarise(struct eval_check_result *out, const struct eval_check *c,
                                 const struct eval_table tables[2], size_t n_worst,
                                 struct status_why *why)
{
    *out = (struct eval_check_result){0};
    struct eval_kld_tables pair = {c->task.plan, c->task.stream, &tables[0], &tables[1]};
    enum status status = eval_kld(&out->kld, &pair, n_worst, why);
    if (status)
        return status;
    struct spread nll = {0}, floor_nll = {0};
    struct base_moments floor = {0};
    for (size_t w = 0; w < tables[0].n_windows; w++) {
        if (!tables[0].done[w])
            continue;
        const double *exact = eval_table_row(&tables[0], EVAL_LOG_PROB, w);
        const double *recorded = eval_table_row(&tables[1], EVAL_LOG_PROB, w);
        for (size_t i = 0; i < tables[0].n_scored; i++) {
            struct eval_check_floor of_token = eval_check_floor_of(c, w, i);
            add_difference(&nll, exact[i] - recorded[i]);
            add_difference(&floor_nll, of_token.nll);
            base_moments_add(&floor, of_token.kld);
            out->floor_max = of_token.kld > out->floor_max ? of_token.kld : out->floor_max;
        }
    }
    out->nll = summary_of(&nll);
    out->floor_nll = summary_of(&floor_nll);
    out->floor = base_moments_estimate(&floor);
    double mean = out->kld.figures.kld.value;
    out->beyond = mean - out->floor.value;
    out->share = mean > 0 ? out->floor.value / mean : (double)NAN;
    return STATUS_OK;
}

void eval_check_result_free(struct eval_check_result *result)
{
    eval_kld_free(&result->kld);
    *result = (struct eval_check_result){0};
}
