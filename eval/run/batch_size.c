#include "eval/run/batch_size.h"

#include <stdlib.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "base/clock.h"
#include "eval/scorer/cost.h"
#include "kernels/backend.h"
#include "kernels/operations.h"

enum {
    MAX_X_BYTES = 64 << 20,
    MAX_TOKENS = 16384,
    TRIAL_TOKENS = 64,      /* of the product whose time is taken */
    TRIAL_ROWS = 64,        /* of its weight at first */
    BATCHES_OF_A_WORKER = 8 /* of several: the last ones end at about the same time */
};
static const double batch_seconds = 15, trial_seconds = 5e-3;

/** The product of a trial: W in the model, x and y beside it. */
struct trial {
    struct kern_weight weight;
    float *x, *y;
};

/** The first matrix of a layer, one of this process's. */
static void take_first(void *user, const struct kern_weight *weight, double share)
{
    (void)share;
    struct trial *t = user;
    if (!t->weight.data)
        t->weight = *weight;
}

static enum status trial_open(struct trial *t, const struct eval_models *models,
                              struct status_why *why)
{
    *t = (struct trial){0};
    struct model_layer_range layers;
    enum status status = eval_stream_layers(models->streams, models->model, &layers, why);
    if (status)
        return status;
    model_layer_walk(models->model, layers.from, take_first, t);
    size_t n_x = TRIAL_TOKENS * t->weight.n_cols, n_y = TRIAL_TOKENS * t->weight.n_rows;
    void *x = NULL, *y = NULL;
    float *zeros;
    status = base_array_new(zeros, n_x, "numbers", why);
    if (!status)
        status = kern_alloc(models->backends[0], &x, n_x * sizeof(float), why);
    if (!status)
        status = kern_alloc(models->backends[0], &y, n_y * sizeof(float), why);
    if (!status)
        status = kern_upload(models->backends[0], x, zeros, n_x * sizeof(float), why);
    free(zeros);
    t->x = x;
    t->y = y;
    return status;
}

/** The shorter of two times: the first may have to read the weight from disk. */
static enum status time_product(struct kern_backend *backend, const struct kern_linear *op,
                                double *seconds, struct status_why *why)
{
    for (int i = 0; i < 2; i++) {
        double started = base_clock_seconds();
        enum status status = kern_linear(backend, op, why);
        double elapsed = base_clock_seconds() - started;
        if (status)
            return status;
        if (i == 0 || elapsed < *seconds)
            *seconds = elapsed;
    }
    return STATUS_OK;
}

/** Operations a second: the product with ever more rows, until it takes long enough to tell. */
static enum status measure_rate(struct trial *t, struct kern_backend *backend, double *rate,
                                struct status_why *why)
{
    size_t all_rows = t->weight.n_rows;
    for (size_t n_rows = TRIAL_ROWS;; n_rows *= 2) {
        t->weight.n_rows = n_rows < all_rows ? n_rows : all_rows;
        struct kern_linear op = {
            .weight = &t->weight,
            .x = t->x,
            .y = t->y,
            .y_stride = t->weight.n_rows,
            .n_tokens = TRIAL_TOKENS,
        };
        double seconds = 0;
        enum status status = time_product(backend, &op, &seconds, why);
        if (status)
            return status;
        double operations =
            2.0 * TRIAL_TOKENS * (double)t->weight.n_rows * (double)t->weight.n_cols;
        *rate = operations / (seconds > 1e-9 ? seconds : 1e-9);
        if (seconds >= trial_seconds || t->weight.n_rows == all_rows)
            return STATUS_OK;
    }
}

static double cost(const struct model *model, const struct eval_size *longest)
{
    return eval_cost_forward(model, longest->n_tokens) + eval_cost_head(model, longest->n_rows);
}

/**
 * Sequences of a batch at most: so many that each of several workers has some batches. One that is
 * given batches ahead computes half of them at a time.
 */
static size_t fair_number(const struct eval_models *models, size_t n_sequences)
{
    size_t depth = models->crew ? base_max(models->crew->depth, 1) : 1;
    size_t n_at_work = eval_models_n_workers(models) * base_div_up(depth, 2);
    return n_at_work > 1 ? base_div_up(n_sequences, n_at_work * BATCHES_OF_A_WORKER) : n_sequences;
}

enum status eval_batch_choose(const struct eval_units *units, const struct eval_models *models,
                              size_t *n_tokens, struct status_why *why)
{
    size_t n_sequences;
    struct eval_size longest = units->kind->longest(units, &n_sequences);
    n_sequences = fair_number(models, n_sequences);
    size_t length = base_max(longest.n_tokens, 1);
    *n_tokens = base_max(n_sequences, 1) * length;
    if (n_sequences == 0)
        return STATUS_OK;
    size_t preferred = kern_describe(models->backends[0]).batch_tokens;
    if (preferred) {
        *n_tokens = base_max(base_min(preferred / length, n_sequences), 1) * length;
        return STATUS_OK;
    }
    double rate = 0;
    struct trial trial;
    enum status status = trial_open(&trial, models, why);
    if (!status)
        status = measure_rate(&trial, models->backends[0], &rate, why);
    kern_free(models->backends[0], trial.x);
    kern_free(models->backends[0], trial.y);
    if (status)
        return status;
    double of_one = cost(models->model, &longest);
    for (size_t i = 0; i < models->n_candidates; i++)
        of_one += cost(models->candidates[i], &longest);
    double n = batch_seconds * rate / of_one;
    size_t most = base_min(MAX_X_BYTES / eval_models_row_bytes(models), MAX_TOKENS) / length;
    most = base_min(n < (double)most ? (size_t)n : most, n_sequences);
    *n_tokens = base_max(most, 1) * length;
    return STATUS_OK;
}
