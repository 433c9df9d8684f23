/** Exponentials, convolution, compression, triangles and steps of kernels/numerics/ops.h. A body.
 */
#ifndef KERNELS_CPU_SIMD_RECURRENT_OPS_H
#define KERNELS_CPU_SIMD_RECURRENT_OPS_H

#include <math.h>
#include <string.h>

#include "kernels/cpu/simd/fmath.h"
#include "kernels/numerics/ops.h"

static void exponentials(float *x, size_t n)
{
    for (size_t i = 0; i < n; i += VEC_FLOATS)
        store_first(x + i, n - i, exp_f(load_first(x + i, n - i)));
}

static void scale(float *y, const float *x, float factor, size_t n)
{
    for (size_t i = 0; i < n; i += VEC_FLOATS)
        store_first(y + i, n - i, V(mul_ps)(load_first(x + i, n - i), V(set1_ps)(factor)));
}

static double squares(const float *x, size_t n)
{
    enum { LANES = 16, N = LANES / VEC_DOUBLES };
    vec_d sum[N];
    for (size_t j = 0; j < N; j++)
        sum[j] = V(setzero_pd)();
    for (size_t i = 0; i < n; i += LANES) {
        float tail[LANES] = {0}; /* a square of 0 changes no lane */
        if (n - i < LANES)
            memcpy(tail, x + i, (n - i) * sizeof *x);
        for (size_t j = 0; j < N; j++) {
            vec_d v = load_wide((n - i < LANES ? tail : x + i) + j * VEC_DOUBLES);
            sum[j] = V(fmadd_pd)(v, v, sum[j]);
        }
    }
    for (size_t half = N / 2; half > 0; half /= 2) {
        for (size_t j = 0; j < half; j++)
            sum[j] = V(add_pd)(sum[j], sum[j + half]);
    }
    return add_lanes(sum[0]);
}

static void convolve(float *y, const struct kern_taps *taps, size_t n)
{
    for (size_t i = 0; i < n; i += VEC_FLOATS) {
        vec_f z = taps->bias ? load_first(taps->bias + i, n - i) : V(setzero_ps)();
        for (size_t j = 0; j < taps->n_taps; j++) {
            if (taps->x[j])
                z = V(fmadd_ps)(load_first(taps->weights + j * taps->stride + i, n - i),
                                load_first(taps->x[j] + i, n - i), z);
        }
        if (!taps->bare) {
            vec_f e = exp_f(V(xor_ps)(z, V(set1_ps)(-0.0f)));
            z = V(div_ps)(z, V(add_ps)(V(set1_ps)(1.0f), e));
        }
        store_first(y + i, n - i, z);
    }
}

static void compress(float *y, const struct kern_terms *terms, size_t n)
{
    for (size_t i = 0; i < n; i += VEC_FLOATS) {
        vec_f most = V(set1_ps)(-INFINITY), sum = V(setzero_ps)(), mean = V(setzero_ps)();
        for (size_t j = 0; j < terms->n_terms; j++) {
            const float *z = kern_term(terms, terms->z, j);
            if (z) /* of a NaN the second operand comes out: what was the most before */
                most = V(max_ps)(load_first(z + i, n - i), most);
        }
        for (size_t j = 0; j < terms->n_terms; j++) {
            const float *u = kern_term(terms, terms->u, j), *z = kern_term(terms, terms->z, j);
            if (!u)
                continue;
            vec_f e = z ? exp_f(V(sub_ps)(load_first(z + i, n - i), most)) : V(set1_ps)(1.0f);
            sum = V(add_ps)(sum, e);
            mean = V(fmadd_ps)(e, load_first(u + i, n - i), mean);
        }
        store_first(y + i, n - i, V(div_ps)(mean, sum));
    }
}

static void triangle(const struct kern_triangle *op)
{
    enum { N = KERN_CHUNK / VEC_FLOATS };
    for (size_t r = op->first; r < op->n_rows; r++) {
        float *out = op->acc + r * KERN_CHUNK;
        const float *w = op->w + r * KERN_CHUNK, *x = op->x;
        vec_f acc[N];
        for (size_t v = 0; v < N; v++)
            acc[v] = V(load_ps)(out + v * VEC_FLOATS);
        for (size_t k = 0; k < r + op->diagonal; k++, x += KERN_CHUNK) {
            vec_f weight = V(set1_ps)(w[k]);
            for (size_t v = 0; v < N; v++)
                acc[v] = V(fmadd_ps)(weight, V(load_ps)(x + v * VEC_FLOATS), acc[v]);
        }
        for (size_t v = 0; v < N; v++)
            V(store_ps)(out + v * VEC_FLOATS, acc[v]);
    }
}

static inline vec_d log_decay(vec_d x, const struct kern_decay *d)
{
    vec_d dt = softplus_d(x);
    dt = V(max_pd)(V(set1_pd)((double)d->dt_min), dt); /* keeps a NaN */
    return V(mul_pd)(dt, V(set1_pd)((double)d->rate));
}

static inline vec_d bounded_log_decay(vec_d x, const struct kern_decay *d)
{
    vec_d minus = V(mul_pd)(x, V(set1_pd)(-fabs((double)d->rate)));
    minus = V(min_pd)(V(set1_pd)(FMATH_EXP_F64_MAX), minus); /* keeps a NaN */
    vec_d sum = V(add_pd)(V(set1_pd)(1.0), exp_d(minus));
    return V(div_pd)(V(set1_pd)((double)d->least_log), sum);
}

static void decays(const struct kern_decays *op)
{
    for (size_t i = 0; i < op->n; i += VEC_FLOATS) {
        vec_d x[2], bias[2];
        widen(load_first(op->dt + i, op->n - i), x);
        widen(load_first(op->bias + i, op->n - i), bias);
        for (size_t j = 0; j < 2; j++) {
            x[j] = V(add_pd)(x[j], bias[j]);
            x[j] = op->decay->least_log == 0 ? log_decay(x[j], op->decay)
                                             : bounded_log_decay(x[j], op->decay);
        }
        store_first(op->y + i, op->n - i, exp_f(narrow(x)));
    }
}

/** Vectors of columns at a time: their chains fit the registers. */
enum { STEP_VECTORS = VEC_FLOATS < 8 ? 2 : VEC_FLOATS / 8 };

/** Chains of sums of STEP_VECTORS vectors of columns. */
struct chains {
    vec_f sum[KERN_STEP_CHAINS][STEP_VECTORS];
};

static inline void clear_chains(struct chains *chains)
{
#pragma GCC unroll 8
    for (size_t i = 0; i < KERN_STEP_CHAINS * STEP_VECTORS; i++)
        chains->sum[i / STEP_VECTORS][i % STEP_VECTORS] = V(setzero_ps)();
}

static inline vec_f add_chains(const struct chains *c, size_t v)
{
    return V(add_ps)(V(add_ps)(c->sum[0][v], c->sum[1][v]), V(add_ps)(c->sum[2][v], c->sum[3][v]));
}

/** A token's part of a pass over S: its change of S, or how it forgets, or none of these. */
struct step_pass {
    const float *k, *q;          /* of the token that changes S */
    const float *decay, *next_k; /* of the token after it */
    vec_f e[STEP_VECTORS];
    struct chains out, held;
};

/** Row c, a part of chain j: S += k e, out += q S; then S *= decay, held += k S of the next token.
 */
static inline __attribute__((always_inline)) void pass_row(struct step_pass *p, float *s, size_t c,
                                                           size_t j, bool changes, bool forgets)
{
#pragma GCC unroll 2
    for (size_t v = 0; v < STEP_VECTORS; v++) {
        float *at = s + c * KERN_CHUNK + v * VEC_FLOATS;
        vec_f x = V(load_ps)(at);
        if (changes) {
            x = V(fmadd_ps)(V(set1_ps)(p->k[c]), p->e[v], x);
            p->out.sum[j][v] = V(fmadd_ps)(V(set1_ps)(p->q[c]), x, p->out.sum[j][v]);
        }
        if (forgets) {
            x = V(mul_ps)(x, V(set1_ps)(p->decay[c]));
            p->held.sum[j][v] = V(fmadd_ps)(V(set1_ps)(p->next_k[c]), x, p->held.sum[j][v]);
        }
        V(store_ps)(at, x);
    }
}

static inline __attribute__((always_inline)) void pass(struct step_pass *p, float *s, size_t n_k,
                                                       bool changes, bool forgets)
{
    size_t whole = n_k / KERN_STEP_CHAINS * KERN_STEP_CHAINS;
    struct step_pass here = *p; /* in registers */
    clear_chains(&here.out);
    clear_chains(&here.held);
    for (size_t c = 0; c < whole; c += KERN_STEP_CHAINS) {
        pass_row(&here, s, c, 0, changes, forgets);
        pass_row(&here, s, c + 1, 1, changes, forgets);
        pass_row(&here, s, c + 2, 2, changes, forgets);
        pass_row(&here, s, c + 3, 3, changes, forgets);
    }
    if (whole < n_k)
        pass_row(&here, s, whole, 0, changes, forgets);
    if (whole + 1 < n_k)
        pass_row(&here, s, whole + 1, 1, changes, forgets);
    if (whole + 2 < n_k)
        pass_row(&here, s, whole + 2, 2, changes, forgets);
    *p = here;
}

/** All tokens of the columns from `first` on: how a token forgets is in the pass of the one before.
 */
static void step_columns(const struct kern_steps *op, size_t first)
{
    struct step_pass p = {.decay = op->decay, .next_k = op->k};
    size_t lanes = op->width - first;
    pass(&p, op->s + first, op->n_k, false, true);
    for (size_t t = 0; t < op->n; t++) {
        for (size_t v = 0; v < STEP_VECTORS; v++) {
            size_t left = lanes > v * VEC_FLOATS ? lanes - v * VEC_FLOATS : 0;
            vec_f x = load_first(op->v + t * op->v_stride + first + v * VEC_FLOATS, left);
            p.e[v] = V(mul_ps)(V(set1_ps)(op->beta[t]), V(sub_ps)(x, add_chains(&p.held, v)));
        }
        p.k = op->k + t * op->n_k;
        p.q = op->q + t * op->n_k;
        p.decay = op->decay + (t + 1) * op->n_k;
        p.next_k = p.k + op->n_k;
        if (t + 1 < op->n)
            pass(&p, op->s + first, op->n_k, true, true);
        else
            pass(&p, op->s + first, op->n_k, true, false);
        for (size_t v = 0; v < STEP_VECTORS; v++) {
            size_t left = lanes > v * VEC_FLOATS ? lanes - v * VEC_FLOATS : 0;
            store_first(op->out + t * op->out_stride + first + v * VEC_FLOATS, left,
                        add_chains(&p.out, v));
        }
    }
}

static void steps(const struct kern_steps *op)
{
    for (size_t first = 0; first < op->width && op->n > 0; first += STEP_VECTORS * VEC_FLOATS)
        step_columns(op, first);
}

#endif
