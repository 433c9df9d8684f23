#include "eval/metrics/check.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "eval/metrics/runs/records.h"
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

/** What is kept of a row of another recording. */
struct other {
    double same;  /* 1: its record has the bits of the first one's */
    double apart; /* KL(first || this), both divided by their sums */
    double columns[EVAL_N_PAIR_COLUMNS];
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
    struct row *rows;     /* of the plan */
    size_t n_rows;        /* of the plan */
    struct other *others; /* [task.n_others][n_rows] */
    struct {              /* of all recordings, last */
        const char *records, **others;
        size_t first, n_rows;
    } taken;
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

/** The recording, then the others. */
static const struct eval_row_source *source_of(const struct eval_check *c, size_t i)
{
    return i ? c->task.others[i - 1] : c->task.recorded;
}

static void expect(void *user, size_t first, size_t n_rows)
{
    const struct eval_check *c = user;
    for (size_t i = 0; i <= c->task.n_others; i++) {
        const struct eval_row_source *source = source_of(c, i);
        if (source->expect)
            source->expect(source->user, first, n_rows);
    }
}

/**
 * The rows of all recordings: the sink gets the exact ones of the same range next, in the same
 * turn, while other backends may call `expect`.
 */
static enum status take_rows(void *user, size_t first, size_t n_rows, const void **rows,
                             struct status_why *why)
{
    struct eval_check *c = user;
    enum status status = STATUS_OK;
    for (size_t i = 0; i <= c->task.n_others && !status; i++) {
        const struct eval_row_source *source = source_of(c, i);
        const void *found = NULL;
        status = source->rows(source->user, first, n_rows, &found, why);
        if (i)
            c->taken.others[i - 1] = found;
        else
            *rows = c->taken.records = found;
    }
    c->taken.first = first;
    c->taken.n_rows = n_rows;
    return status;
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
    const struct eval_check *c = user;
    enum status status = STATUS_OK;
    for (size_t i = 0; i <= c->task.n_others && !status; i++) {
        const struct eval_row_source *source = source_of(c, i);
        if (source->unchanged)
            status = source->unchanged(source->user, why);
    }
    return status;
}

/** The room for hidden rows on one of the backends. */
static float *hidden_on(const struct eval_check *c, const struct kern_backend *backend)
{
    size_t i = 0;
    while (c->task.backends[i] != backend)
        i++;
    return c->scratch.hidden[i];
}

/** Exact rows on a backend, some of the plan's. */
struct exact {
    struct kern_backend *backend;
    const float *hidden;
    size_t first, n_rows;
};

static void set_targets(struct eval_check *c, const struct exact *e)
{
    const struct eval_plan *plan = c->task.plan;
    for (size_t i = 0; i < e->n_rows; i++) {
        size_t w = (e->first + i) / plan->n_scored, p = (e->first + i) % plan->n_scored;
        size_t target = eval_plan_target(plan, w, plan->first_scored + p);
        c->scratch.targets[i] = (struct kern_target){(uint32_t)i, c->task.stream->ids[target]};
    }
}

/** Compare exact rows with records of them: the record's scores lie first. */
static enum status score_records(struct eval_check *c, const struct exact *e,
                                 const uint16_t *records, struct status_why *why)
{
    struct scratch *s = &c->scratch;
    struct kern_recorded recorded = {records, kern_record_codes(n_vocab(c)), -(double)INFINITY};
    struct kern_head heads[2] = {{.recorded = &recorded}, model_kern_head(c->task.model)};
    heads[1].hidden = e->hidden;
    struct kern_score score = {
        .n_heads = 2,
        .heads = heads,
        .n_rows = e->n_rows,
        .n_targets = e->n_rows,
        .targets = s->targets,
        .rows = s->rows,
        .target_scores = s->target_scores,
        .pairs = s->pairs,
    };
    return kern_score(e->backend, &score, why);
}

/** KL(q || p / sum p) from KL(q || p) and ln sum p, without what rounding leaves below 0. */
static double renormalised(double reverse_kl, double log_sum)
{
    double kl = reverse_kl + log_sum;
    return kl < 0 && kl >= -rounding ? 0 : kl;
}

/** Record exact rows, and compare them with what was recorded. */
static enum status score_own(struct eval_check *c, const struct exact *e, struct status_why *why)
{
    const struct scratch *s = &c->scratch;
    struct kern_record record = {.head = model_kern_head(c->task.model),
                                 .n_rows = e->n_rows,
                                 .records = s->records,
                                 .stride = kern_record_codes(n_vocab(c)),
                                 .reach = (float)c->task.reach};
    record.head.hidden = e->hidden;
    enum status status = kern_record(e->backend, &record, why);
    if (!status)
        status = score_records(c, e, s->records, why);
    for (size_t i = 0; i < e->n_rows && !status; i++) {
        struct row *row = &c->rows[e->first + i];
        size_t exact = e->n_rows + i;
        row->top = -s->rows[exact].log_sum;
        row->floor.kld =
            renormalised(s->pairs[exact].reverse_kl, s->rows[i].max_logit + s->rows[i].log_sum);
        row->floor.nll = s->target_scores[exact].log_prob - s->target_scores[i].log_prob;
    }
    return status;
}

/** Keep of row `first + i` what a table of pairs has of it. record: the first recording's. */
static void keep_other(struct eval_check *c, const struct exact *e, size_t k, size_t i,
                       const char *record, const char *other)
{
    const struct scratch *s = &c->scratch;
    const struct kern_row_score *rows = &s->rows[i], *exact = &s->rows[e->n_rows + i];
    const struct kern_pair_score *pair = &s->pairs[e->n_rows + i];
    struct other *a = &c->others[k * c->n_rows + e->first + i];
    double log_sum = rows->max_logit + rows->log_sum;
    a->same = memcmp(record, other, record_bytes(c)) == 0;
    a->apart = a->same > 0 ? 0 : eval_records_apart(record, other, n_vocab(c));
    a->columns[EVAL_LOG_PROB] = s->target_scores[i].log_prob;
    a->columns[EVAL_RANK] = s->target_scores[i].rank;
    a->columns[EVAL_ENTROPY] = rows->entropy;
    a->columns[EVAL_KL] = renormalised(pair->reverse_kl, log_sum);
    a->columns[EVAL_REVERSE_KL] = renormalised(pair->kl * exp(-log_sum), -log_sum);
    a->columns[EVAL_JS] = 0;
    a->columns[EVAL_TV] = 0;
    a->columns[EVAL_SAME_TOP] = rows->argmax == exact->argmax;
    a->columns[EVAL_COMMON_5] = pair->common_top[1];
    a->columns[EVAL_COMMON_10] = pair->common_top[2];
    a->columns[EVAL_BASE_TOP] = -exact->log_sum;
}

/** Score these rows against the k-th of the other recordings. */
static enum status score_other(struct eval_check *c, const struct exact *e, size_t k,
                               struct status_why *why)
{
    const struct eval_row_source *other = c->task.others[k];
    assert(e->first >= c->taken.first && e->first + e->n_rows <= c->taken.first + c->taken.n_rows);
    size_t n = record_bytes(c), at = (e->first - c->taken.first) * n;
    const char *record = c->taken.records + at, *found = c->taken.others[k] + at;
    enum status status = score_records(c, e, (const uint16_t *)(const void *)found, why);
    if (!status && other->check)
        status = other->check(other->user, e->first, e->n_rows, c->scratch.rows, why);
    for (size_t i = 0; i < e->n_rows && !status; i++)
        keep_other(c, e, k, i, record + i * n, found + i * n);
    return status;
}

static enum status take_hidden(void *user, struct kern_backend *backend, size_t first,
                               size_t n_rows, const void *rows, struct status_why *why)
{
    struct eval_check *c = user;
    float *hidden = hidden_on(c, backend);
    enum status status = STATUS_OK;
    for (size_t done = 0, n; done < n_rows && !status; done += n) {
        n = n_rows - done < c->scratch.max_rows ? n_rows - done : c->scratch.max_rows;
        struct exact e = {backend, hidden, first + done, n};
        status = kern_upload(backend, hidden, (const char *)rows + done * hidden_bytes(c),
                             n * hidden_bytes(c), why);
        set_targets(c, &e);
        if (!status)
            status = score_own(c, &e, why);
        for (size_t k = 0; k < c->task.n_others && !status; k++)
            status = score_other(c, &e, k, why);
    }
    return status;
}

/* What is kept of a row is all numbers. */
enum {
    ROW_DOUBLES = sizeof(struct row) / sizeof(double),
    OTHER_DOUBLES = sizeof(struct other) / sizeof(double)
};

static enum status save_rows(void *user, size_t w, double *state, struct status_why *why)
{
    (void)why;
    const struct eval_check *c = user;
    size_t n = c->task.plan->n_scored;
    memcpy(state, c->rows + w * n, n * sizeof *c->rows);
    state += ROW_DOUBLES * n;
    for (size_t k = 0; k < c->task.n_others; k++, state += OTHER_DOUBLES * n)
        memcpy(state, c->others + k * c->n_rows + w * n, n * sizeof *c->others);
    return STATUS_OK;
}

static enum status restore_rows(void *user, size_t w, const double *state, bool *restored,
                                struct status_why *why)
{
    (void)why;
    struct eval_check *c = user;
    size_t n = c->task.plan->n_scored;
    memcpy(c->rows + w * n, state, n * sizeof *c->rows);
    state += ROW_DOUBLES * n;
    for (size_t k = 0; k < c->task.n_others; k++, state += OTHER_DOUBLES * n)
        memcpy(c->others + k * c->n_rows + w * n, state, n * sizeof *c->others);
    *restored = true;
    return STATUS_OK;
}

static enum status allocate(struct eval_check *c, struct status_why *why)
{
    struct scratch *s = &c->scratch;
    size_t n = RECORD_BYTES / record_bytes(c) / ROW_GROUP * ROW_GROUP;
    n = n > EVAL_SLAB_ROWS ? EVAL_SLAB_ROWS : n;
    s->max_rows = n ? n : ROW_GROUP;
    size_t n_rows = c->n_rows = c->task.plan->n_windows * c->task.plan->n_scored;
    size_t n_others = c->task.n_others;
    c->rows = calloc(n_rows + 1, sizeof *c->rows);
    if (n_others <= SIZE_MAX / (n_rows + 1))
        c->others = calloc(n_others * n_rows + 1, sizeof *c->others);
    c->taken.others = calloc(n_others + 1, sizeof *c->taken.others);
    s->records = malloc(s->max_rows * record_bytes(c));
    s->targets = calloc(s->max_rows, sizeof *s->targets);
    s->rows = calloc(2 * s->max_rows, sizeof *s->rows);
    s->target_scores = calloc(2 * s->max_rows, sizeof *s->target_scores);
    s->pairs = calloc(2 * s->max_rows, sizeof *s->pairs);
    s->hidden = calloc(c->task.n_backends, sizeof *s->hidden);
    if (!c->rows || !s->records || !s->targets || !s->rows || !s->target_scores || !s->pairs ||
        !s->hidden || !c->others || !c->taken.others)
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

/** What the other recordings take: resident pages of a call, what is kept, and their tables. */
static double others_bytes(const struct eval_check *c)
{
    bool on_host = !kern_describe(c->task.backends[0]).own_memory;
    double sum = 0;
    for (size_t k = 0; k < c->task.n_others; k++) {
        const struct eval_row_source *other = c->task.others[k];
        size_t n = base_min(c->n_rows, EVAL_SLAB_ROWS);
        n = other->max_rows && on_host ? base_min(n, other->max_rows) : n;
        sum += other->n_bytes + (double)(n * record_bytes(c)) +
               (double)c->n_rows * (sizeof(struct other) + EVAL_N_PAIR_COLUMNS * sizeof(double));
    }
    return sum;
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
    c->source.n_bytes += own_bytes(c) + others_bytes(c);
    c->sink = (struct eval_row_sink){.kind = EVAL_ROWS_HIDDEN,
                                     .user = c,
                                     .write = take_hidden,
                                     .n_state = task->plan->n_scored *
                                                (ROW_DOUBLES + task->n_others * OTHER_DOUBLES),
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
    free(c->others);
    free(c->taken.others);
    free(c);
}

const struct eval_check_task *eval_check_task(const struct eval_check *c)
{
    return &c->task;
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

/** Swap the first two tables' columns that both have. */
static void swap_scores(struct eval_table tables[2], size_t w, size_t n)
{
    for (size_t k = 0; k < EVAL_N_COLUMNS * n; k++) {
        double *recorded = eval_table_row(&tables[0], (enum eval_column)(k / n), w) + k % n;
        double *exact = eval_table_row(&tables[1], (enum eval_column)(k / n), w) + k % n;
        double of_record = *recorded;
        *recorded = *exact;
        *exact = of_record;
    }
}

/** From the divergences of a model from r to those of r, renormalised, from the model. */
static void turn_pair(const struct eval_check *c, struct eval_table *table, size_t w)
{
    size_t n = c->task.plan->n_scored;
    double *kl = eval_table_row(table, EVAL_KL, w);
    double *reverse = eval_table_row(table, EVAL_REVERSE_KL, w);
    for (size_t i = 0; i < n; i++) {
        double log_sum = c->rows[w * n + i].log_sum;
        double of_record = kl[i] * exp(-log_sum); /* KL(r || p), but for ln sum r */
        kl[i] = renormalised(reverse[i], log_sum);
        reverse[i] = renormalised(of_record, -log_sum);
    }
}

void eval_check_window(const struct eval_check *c, const struct eval_check_tables *t, size_t w)
{
    size_t n = c->task.plan->n_scored;
    swap_scores(t->tables, w, n);
    for (size_t k = 1; k < t->n_tables; k++)
        turn_pair(c, &t->tables[k], w);
    double *top = eval_table_row(&t->tables[1], EVAL_BASE_TOP, w);
    for (size_t i = 0; i < n; i++)
        top[i] = c->rows[w * n + i].top;
    for (size_t o = 0; o < c->task.n_others; o++) {
        const struct other *rows = c->others + o * c->n_rows + w * n;
        for (size_t k = 0; k < EVAL_N_PAIR_COLUMNS * n; k++)
            eval_table_row(&t->others[o], (enum eval_column)(k / n), w)[k % n] =
                rows[k % n].columns[k / n];
        t->others[o].done[w] = true;
    }
}

bool eval_check_same_bits(const struct eval_check *c, size_t k, const struct eval_table *table)
{
    size_t n = c->task.plan->n_scored;
    const struct other *rows = c->others + k * c->n_rows;
    for (size_t w = 0; w < table->n_windows; w++)
        for (size_t i = 0; table->done[w] && i < n; i++)
            if (!(rows[w * n + i].same > 0))
                return false;
    return true;
}

double eval_check_apart(const struct eval_check *c, size_t k, size_t w, size_t i)
{
    return c->others[k * c->n_rows + w * c->task.plan->n_scored + i].apart;
}

struct eval_check_floor eval_check_floor_of(const struct eval_check *c, size_t w, size_t i)
{
    return c->rows[w * c->task.plan->n_scored + i].floor;
}
