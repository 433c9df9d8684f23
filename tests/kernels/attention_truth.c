#include "tests/kernels/attention_truth.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/cmocka.h"
struct attention_shape attention_shape_random(struct rng *r, size_t most)
{
    static const size_t heads[][2] = {{1, 1}, {4, 2}, {6, 1}, {20, 1}};
    const size_t *n = heads[rng_below(r, 4)];
    most = n[0] > 6 ? 16 : most;
    return (struct attention_shape){
        .n_heads = n[0],
        .n_kv_heads = n[1],
        .head_size = 1 + rng_below(r, most),
        .value_size = 1 + rng_below(r, most),
        .sliding_window = rng_below(r, 2) * (1 + rng_below(r, 120)),
        .chunk = rng_below(r, 2) * (1 + rng_below(r, 120)),
        .soft_cap = rng_below(r, 3) > 0 ? rng_float(r, 0.5f, 20.0f) : 0.0f,
        .sinks = rng_below(r, 3) > 0,
    };
}

struct kern_attention attention_shape_op(const struct attention_shape *shape, struct rng *r,
                                         struct attention_sinks *sinks)
{
    for (size_t i = 0; i < shape->n_heads; i++)
        sinks->sinks[i] = i == 2 ? -INFINITY : 3.0f * rng_normal(r);
    sinks->weight = (struct kern_weight){.type = GGUF_TYPE_F32,
                                         .n_rows = 1,
                                         .n_cols = shape->n_heads,
                                         .row_bytes = shape->n_heads * sizeof(float),
                                         .data = sinks->sinks,
                                         .scale = 1.0f,
                                         .generation = kern_next_generation()};
    return (struct kern_attention){
        .n_heads = shape->n_heads,
        .n_kv_heads = shape->n_kv_heads,
        .head_size = shape->head_size,
        .value_size = shape->value_size ? shape->value_size : shape->head_size,
        .scale = 1.0f / sqrtf((float)shape->head_size),
        .soft_cap = shape->soft_cap,
        .sliding_window = shape->sliding_window,
        .chunk = shape->chunk,
        .sinks = shape->sinks ? &sinks->weight : NULL,
    };
}

/** One query under one head in float64. */
struct truth {
    const struct kern_attention *op;
    const struct attention_rounding *rounding;
    double *out;   /* [dv] */
    double *bound; /* [dv] */
};

/** What a query sees: scores, where values begin, and how far off a score may be. */
struct seen {
    size_t first, last;
    double scores[ATTENTION_TRUTH_MAX_KEYS];
    const float *values[ATTENTION_TRUTH_MAX_KEYS];
    double sink; /* -infinity: none */
    double max, max_abs, score_error;
};

/** Whether a query has chosen a key. */
static bool is_chosen(const struct kern_attention *op, size_t row, size_t kv_head, size_t key)
{
    const struct kern_chosen *c = &op->chosen;
    size_t words = (c->most_keys + 63) / 64, set = c->n_sets > 1 ? kv_head : 0;
    return !c->bits || (c->bits[(row * c->n_sets + set) * words + key / 64] >> key % 64 & 1);
}

/** What query index i sees begins with this key index. */
static size_t first_seen(const struct kern_attention *op, size_t i)
{
    size_t first = 0;
    for (size_t j = 0; j < i; j++) {
        bool seen = (!op->sliding_window || i - j < op->sliding_window) &&
                    (!op->chunk || j / op->chunk == i / op->chunk);
        first = seen ? first : j + 1;
    }
    return first;
}

static double largest_of(const float *x, size_t n)
{
    float most = 0.0f;
    for (size_t i = 0; i < n; i++)
        if (fabsf(x[i]) > most)
            most = fabsf(x[i]);
    return (double)most;
}

static double sum_magnitudes(const float *x, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++)
        sum += fabs((double)x[i]);
    return sum;
}

/** What rounded factors add to the error of q k: of each block of 64 columns. */
static double rounded_score(const float *q, const float *k, size_t d, double operand)
{
    double error = 0.0;
    for (size_t first = 0; first < d && operand > 0.0; first += 64) {
        size_t n = d - first < 64 ? d - first : 64;
        double q_step = operand * largest_of(q + first, n);
        double k_step = operand * largest_of(k + first, n);
        double of_k = sum_magnitudes(k + first, n), of_q = sum_magnitudes(q + first, n);
        error += q_step * of_k + k_step * of_q + (double)n * q_step * k_step;
    }
    return error;
}

static void find_seen(const struct truth *truth, const struct kern_query_range *range, size_t query,
                      size_t head, struct seen *seen)
{
    const struct kern_attention *op = truth->op;
    const struct attention_rounding *rounding = truth->rounding;
    size_t d = op->head_size, kv_head = head / (op->n_heads / op->n_kv_heads);
    size_t last = range->n_parent + range->q_offset + query;
    double cap = (double)op->soft_cap;
    const float *q = op->q + (range->q_row + query) * op->n_heads * d + head * d;
    double product_error =
        (double)(d * rounding->n_products + 2) * rounding->unit + rounding->product;
    seen->first = first_seen(op, last);
    seen->last = last;
    seen->sink = op->sinks ? (double)((const float *)op->sinks->data)[head] : -HUGE_VAL;
    seen->max = seen->sink;
    seen->max_abs = isfinite(seen->sink) ? fabs(seen->sink) : 0.0;
    seen->score_error = 0.0;
    for (size_t key = seen->first; key <= last; key++) {
        size_t row = key < range->n_parent ? range->parent_kv_row + key
                                           : range->kv_row + key - range->n_parent;
        seen->values[key] = op->v + (row * op->n_kv_heads + kv_head) * op->value_size;
        seen->scores[key] = -HUGE_VAL;
        if (!is_chosen(op, range->q_row + query, kv_head, key))
            continue;
        const float *k = op->k + (row * op->n_kv_heads + kv_head) * d;
        double dot = 0.0, magnitude = 0.0;
        for (size_t i = 0; i < d; i++) {
            dot += (double)q[i] * (double)k[i];
            magnitude += fabs((double)q[i] * (double)k[i]);
        }
        double s = dot * (double)op->scale;
        double error = product_error * magnitude + rounded_score(q, k, d, rounding->operand);
        error *= fabs((double)op->scale);
        if (cap > 0.0) {
            s = cap * tanh(s / cap);
            error += 8.0 * rounding->unit * fabs(s);
        }
        seen->scores[key] = s;
        seen->max = fmax(seen->max, s);
        seen->max_abs = fmax(seen->max_abs, fabs(s));
        seen->score_error = fmax(seen->score_error, error);
    }
}

/**
 * What rounded terms p and values add to errors: of element i, the sum over keys of
 * value[key] + term[key] |v_i|. m being a value's largest: a value is off by operand m; a term by
 * operand times the largest p m of its block of keys, over its own m.
 */
struct rounded_errors {
    double value[ATTENTION_TRUTH_MAX_KEYS], term[ATTENTION_TRUTH_MAX_KEYS];
};

static void find_rounded_errors(const struct truth *truth, const struct seen *seen, double sum,
                                struct rounded_errors *errors)
{
    double operand = truth->rounding->operand, largest[ATTENTION_TRUTH_MAX_KEYS];
    memset(errors, 0, sizeof *errors);
    for (size_t key = seen->first; key <= seen->last && operand > 0.0; key++) {
        largest[key] = largest_of(seen->values[key], truth->op->value_size);
        errors->value[key] = exp(seen->scores[key] - seen->max) / sum * operand * largest[key];
    }
    for (size_t key = seen->first; key <= seen->last && operand > 0.0; key++) {
        double most = 0.0;
        size_t block = truth->rounding->key_block, first = key / block * block;
        for (size_t j = first; j < first + block && j <= seen->last; j++)
            if (j >= seen->first && errors->value[j] > most)
                most = errors->value[j];
        errors->term[key] = largest[key] > 0.0 ? most / largest[key] : 0.0;
    }
    for (size_t key = seen->first; key <= seen->last && operand > 0.0; key++)
        errors->value[key] += errors->term[key] * operand * largest[key];
}

static double add_rounded_errors(const struct rounded_errors *errors, const struct seen *seen,
                                 size_t i)
{
    double error = 0.0;
    for (size_t key = seen->first; key <= seen->last; key++)
        error += errors->value[key] + errors->term[key] * fabs((double)seen->values[key][i]);
    return error;
}

/*
 * With u the unit of rounding, n keys in m blocks, and p products added for two numbers, each off
 * by r: a score q k, d p sums in a chain and a scaling, is off by at most
 * e = ((d p + 2) u + r) sum|q k| scale; subtracting the maximum adds u |s - max|. So a term
 * exp(s - max) is off relatively by at most 2 e + 2 u |s|max (its own score's and the maximum's
 * error), plus 3 u for exp and its result's rounding, plus 4 u per block for being rescaled. Sums
 * of n terms add n p u + r above and n u below the fraction, the division 3 u. A sink is a term
 * more below it.
 *
 * A soft cap does not make an error larger, tanh x growing no faster than x. It adds 2 u relatively
 * for the quotient (of x, and x tanh'(x) <= tanh x), 2.5 ulp or 5 u for tanh, u for the product.
 */
static void evaluate(const struct truth *truth, const struct kern_query_range *range, size_t query,
                     size_t head)
{
    struct seen seen;
    find_seen(truth, range, query, head, &seen);
    const struct attention_rounding *rounding = truth->rounding;
    double sum = exp(seen.sink - seen.max);
    for (size_t key = seen.first; key <= seen.last; key++)
        sum += exp(seen.scores[key] - seen.max);
    size_t n = seen.last + 1 - seen.first, n_blocks = n / rounding->key_block + 2;
    size_t n_sums = n * rounding->n_products + n + 1 + 4 * n_blocks + 6;
    double relative = 2.0 * seen.score_error + 4.0 * rounding->unit * seen.max_abs +
                      (double)n_sums * rounding->unit + rounding->product;
    struct rounded_errors rounded;
    find_rounded_errors(truth, &seen, sum, &rounded);
    for (size_t i = 0; i < truth->op->value_size; i++) {
        double value = 0.0, magnitude = 0.0, error = add_rounded_errors(&rounded, &seen, i);
        for (size_t key = seen.first; key <= seen.last; key++) {
            double term = exp(seen.scores[key] - seen.max) / sum * (double)seen.values[key][i];
            value += term;
            magnitude += fabs(term);
        }
        truth->out[i] = value;
        truth->bound[i] = 1.01 * (relative * magnitude + error); /* products of small errors */
    }
}

struct attention_error attention_truth_check(const struct kern_attention *op,
                                             const struct attention_rounding *rounding)
{
    size_t d = op->value_size;
    struct truth truth = {op, rounding, malloc(d * sizeof(double)), malloc(d * sizeof(double))};
    double *errors = calloc(d, sizeof *errors), squares = 0.0;
    struct attention_error all = {0.0, 0.0};
    assert_non_null(errors);
    for (size_t i = 0; i < op->n_ranges; i++) {
        const struct kern_query_range *range = &op->ranges[i];
        for (size_t j = 0; j < range->n_q * op->n_heads; j++) {
            size_t query = j / op->n_heads, head = j % op->n_heads;
            evaluate(&truth, range, query, head);
            const float *out = op->out + (range->q_row * op->n_heads + j) * d;
            for (size_t c = 0; c < d; c++) {
                double error = (double)out[c] - truth.out[c];
                if (!(fabs(error) <= truth.bound[c]))
                    fail_msg("range %zu query %zu head %zu: %.9g, expected %.9g +- %.2g", i, query,
                             head, (double)out[c], truth.out[c], truth.bound[c]);
                errors[c] += error * error;
                squares += truth.out[c] * truth.out[c];
            }
        }
    }
    for (size_t c = 0; c < d; c++) {
        all.usual += errors[c];
        all.worst = fmax(all.worst, errors[c]);
    }
    free(errors);
    free(truth.out);
    free(truth.bound);
    return (struct attention_error){sqrt(all.usual / squares),
                                    sqrt(all.worst * (double)d / squares)};
}
