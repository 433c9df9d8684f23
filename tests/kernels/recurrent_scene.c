#include "tests/kernels/recurrent_scene.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/cmocka.h"
enum { GATE_COLUMNS = 3 /* beside dt and beta, as in a product's output that has more */ };

static float *floats(const struct guard *g)
{
    return (float *)(void *)g->data;
}

static struct guard random_rows(struct rng *r, size_t n, float spread)
{
    struct guard g = guard_open(n * sizeof(float), 0);
    for (size_t i = 0; i < n; i++)
        floats(&g)[i] = spread * rng_normal(r);
    return g;
}

size_t recurrent_scene_width(const struct recurrent_scene *s)
{
    const struct kern_recur *op = &s->recur;
    return 2 * op->n_k_heads * op->k_size + op->n_heads * op->v_size;
}

/** Numbers of dt of a token. */
static size_t n_steps(const struct recurrent_shape *shape)
{
    return shape->n_heads * (shape->by_channel ? shape->k_size : 1);
}

/** n numbers of the scene's vectors as n_rows rows; *next is where they begin. */
static struct kern_weight *take(struct recurrent_scene *s, size_t i, float **next, size_t n_rows,
                                size_t n_cols)
{
    s->weights[i] = (struct kern_weight){.type = GGUF_TYPE_F32,
                                         .n_rows = n_rows,
                                         .n_cols = n_cols,
                                         .row_bytes = n_cols * sizeof(float),
                                         .data = *next,
                                         .scale = 1,
                                         .generation = kern_next_generation()};
    *next += n_rows * n_cols;
    return &s->weights[i];
}

static void open_recur(struct recurrent_scene *s, const struct recurrent_shape *shape)
{
    float *q = floats(&s->q), *gates = floats(&s->gates);
    size_t k_width = shape->n_k_heads * shape->k_size;
    s->recur = (struct kern_recur){
        .q = q,
        .k = q + k_width,
        .v = q + 2 * k_width,
        .dt = gates,
        .beta = shape->delta ? gates + n_steps(shape) : NULL,
        .dt_stride = n_steps(shape) + shape->n_heads + GATE_COLUMNS,
        .beta_stride = n_steps(shape) + shape->n_heads + GATE_COLUMNS,
        .by_channel = shape->by_channel,
        .least_log = shape->least_log,
        .dt_min = shape->dt_min,
        .out = floats(&s->out),
        .n_k_heads = shape->n_k_heads,
        .n_heads = shape->n_heads,
        .k_size = shape->k_size,
        .v_size = shape->v_size,
        .alternate = shape->alternate,
        .unit = shape->unit,
        .eps = 1e-6f,
        .scale = shape->unit ? 1 / sqrtf((float)shape->k_size) : 1,
    };
    s->recur.stride = recurrent_scene_width(s);
}

void recurrent_scene_open(struct recurrent_scene *s, struct rng *r,
                          const struct recurrent_shape *shape, size_t n_taps, size_t n_tokens)
{
    size_t n_heads = shape->n_heads;
    size_t width = 2 * shape->n_k_heads * shape->k_size + n_heads * shape->v_size;
    *s = (struct recurrent_scene){.n_tokens = n_tokens};
    s->x = random_rows(r, n_tokens * (width + 5), 1.5f);
    s->q = random_rows(r, n_tokens * width, 1.5f);
    s->gates = random_rows(r, n_tokens * (n_steps(shape) + n_heads + GATE_COLUMNS), 1.0f);
    s->out = guard_open(n_tokens * n_heads * shape->v_size * sizeof(float), 0);
    s->y = guard_open(n_tokens * width * sizeof(float), 0);
    size_t n_vectors = n_steps(shape) + 2 * n_heads + (n_taps + 1) * width;
    float *next = s->vectors = malloc(n_vectors * sizeof *next);
    assert_non_null(next);
    for (size_t i = 0; i < n_vectors; i++)
        next[i] = 0.5f * rng_normal(r);
    open_recur(s, shape);
    s->recur.dt_bias = take(s, 0, &next, 1, n_steps(shape));
    for (size_t i = 0; i < n_heads; i++) /* softplus(0) is ln 2 */
        next[i] =
            shape->least_log < 0 ? expf(next[i]) : logf(shape->slowest) / 0.6931f * expf(next[i]);
    s->recur.decay = take(s, 1, &next, 1, n_heads);
    const struct kern_weight *skip = take(s, 2, &next, 1, n_heads);
    s->recur.skip = shape->delta ? NULL : skip;
    s->convolve = (struct kern_convolve){.x = floats(&s->x),
                                         .x_stride = width + 5,
                                         .y = floats(&s->y),
                                         .weight = take(s, 3, &next, width, n_taps),
                                         .bare = n_taps == 3,
                                         .step = n_taps == 2 ? 3 : 0};
    const struct kern_weight *bias = take(s, 4, &next, 1, width);
    s->convolve.bias = shape->delta ? NULL : bias;
}

void recurrent_scene_close(struct recurrent_scene *s)
{
    struct guard *all[] = {&s->x, &s->q, &s->gates, &s->out, &s->y};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_true(guard_intact(all[i]));
        guard_close(all[i]);
    }
    free(s->vectors);
}

void recurrent_scene_copy(struct recurrent_scene *s, size_t from, size_t to)
{
    struct guard *all[] = {&s->x, &s->q, &s->gates};
    for (size_t i = 0; i < 3; i++) {
        size_t n_bytes = all[i]->n_bytes / s->n_tokens;
        memcpy(all[i]->data + to * n_bytes, all[i]->data + from * n_bytes, n_bytes);
    }
}

/** The larger one, or a NaN. */
static double larger(double a, double b)
{
    return a > b || isnan(a) ? a : b;
}

static double value(const struct kern_weight *w, size_t i)
{
    return w ? (double)((const float *)w->data)[i] : 0.0;
}

static double factor(const struct kern_recur *op, const float *x)
{
    double sum = 0;
    for (size_t i = 0; i < op->k_size; i++)
        sum += (double)x[i] * (double)x[i];
    return op->unit == KERN_UNIT_NONE ? 1 : 1 / sqrt(sum + (double)op->eps);
}

/** dt of a row, column i. */
static double step_of(const struct kern_recur *op, size_t row, size_t i)
{
    double x = (double)op->dt[row * op->dt_stride + i] + value(op->dt_bias, i);
    return fmax(x > 100 ? x : log1p(exp(x)), (double)op->dt_min);
}

/** Of channel i. */
static double log_decay(const struct kern_recur *op, size_t head, size_t row, size_t i)
{
    double rate = value(op->decay, head);
    size_t column = op->by_channel ? head * op->k_size + i : head;
    double x = (double)op->dt[row * op->dt_stride + column] + value(op->dt_bias, column);
    if (op->least_log < 0)
        return (double)op->least_log / (1 + exp(-fabs(rate) * x));
    return step_of(op, row, column) * rate;
}

/** One token under one head: S changes, out is written. */
static void step(const struct kern_recur *op, size_t head, size_t row, double *state, double *out)
{
    size_t group = op->n_heads / op->n_k_heads, dk = op->k_size, dv = op->v_size;
    size_t k_head = op->alternate ? head % op->n_k_heads : head / group;
    const float *q = op->q + row * op->stride + k_head * dk;
    const float *k = op->k + row * op->stride + k_head * dk;
    const float *v = op->v + row * op->stride + head * dv;
    double dt = step_of(op, row, op->by_channel ? head * dk : head);
    double beta = op->beta ? 1 / (1 + exp(-(double)op->beta[row * op->beta_stride + head])) : dt;
    double k_factor = factor(op, k), q_factor = factor(op, q) * (double)op->scale;
    double decays[1024];
    for (size_t i = 0; i < dk; i++)
        decays[i] = exp(log_decay(op, head, row, i));
    for (size_t c = 0; c < dv; c++) {
        double held = 0, sum = 0;
        for (size_t i = 0; i < dk; i++) {
            state[i * dv + c] *= decays[i];
            held += state[i * dv + c] * (double)k[i] * k_factor;
        }
        double e = beta * ((double)v[c] - (op->beta ? held : 0));
        for (size_t i = 0; i < dk; i++) {
            state[i * dv + c] += (double)k[i] * k_factor * e;
            sum += state[i * dv + c] * (double)q[i] * q_factor;
        }
        out[c] = sum + value(op->skip, head) * (double)v[c];
    }
}

/** A run under one head, from `state`: the largest error; *squares is added to. */
static double check_run(const struct kern_recur *op, const struct kern_run *run, size_t head,
                        double *state, double *squares)
{
    double out[1024], worst = 0;
    assert_true(op->v_size <= 1024 && op->k_size <= 1024);
    for (size_t t = 0; t < run->n; t++) {
        size_t row = run->row + t;
        step(op, head, row, state, out);
        for (size_t c = 0; c < op->v_size; c++) {
            double found = (double)op->out[(row * op->n_heads + head) * op->v_size + c];
            double error = fabs(found - out[c]);
            worst = larger(error, worst);
            *squares += out[c] * out[c];
        }
    }
    return worst;
}

double recurrent_truth_recur(const struct kern_recur *op)
{
    size_t n_state = op->k_size * op->v_size;
    double *state = malloc(2 * n_state * sizeof *state), *parent = state + n_state, worst = 0;
    assert_non_null(state);
    for (size_t head = 0; head < op->n_heads; head++) {
        double squares = 0, error = 0;
        size_t n = 0;
        for (size_t i = 0; i < op->n_runs; i++) {
            const struct kern_run *run = &op->runs[i];
            if (run->parent == KERN_NONE)
                memset(state, 0, n_state * sizeof *state);
            else
                memcpy(state, parent, n_state * sizeof *state);
            error = larger(check_run(op, run, head, state, &squares), error);
            if (run->parent == KERN_NONE)
                memcpy(parent, state, n_state * sizeof *state);
            n += run->n * op->v_size;
        }
        worst = larger(error / sqrt(squares / (double)n), worst);
    }
    free(state);
    return worst;
}

/** Row of the token `back` before token t of a run; -1: none. */
static ptrdiff_t tap_row(const struct kern_convolve *op, const struct kern_run *run, size_t t,
                         size_t back)
{
    if (back <= t)
        return (ptrdiff_t)(run->row + t - back);
    back -= t;
    if (run->parent == KERN_NONE)
        return -1;
    run = &op->runs[run->parent];
    return back <= run->n ? (ptrdiff_t)(run->row + run->n - back) : -1;
}

double recurrent_truth_convolve(const struct kern_convolve *op)
{
    size_t n_taps = op->weight->n_cols, n_channels = op->weight->n_rows;
    size_t step = op->step > 0 ? op->step : 1;
    double worst = 0;
    for (size_t i = 0; i < op->n_runs; i++) {
        const struct kern_run *run = &op->runs[i];
        for (size_t t = 0; t < run->n; t++) {
            for (size_t c = 0; c < n_channels; c++) {
                double z = value(op->bias, c), size = fabs(z);
                for (size_t j = 0; j < n_taps; j++) {
                    ptrdiff_t row = tap_row(op, run, t, (n_taps - 1 - j) * step);
                    double x = row < 0 ? 0 : (double)op->x[(size_t)row * op->x_stride + c];
                    z += x * value(op->weight, c * n_taps + j);
                    size += fabs(x * value(op->weight, c * n_taps + j));
                }
                double found = (double)op->y[(run->row + t) * n_channels + c];
                double y = op->bare ? z : z / (1 + exp(-z));
                worst = larger(fabs(found - y) / fmax(size, 1e-30), worst);
            }
        }
    }
    return worst;
}
