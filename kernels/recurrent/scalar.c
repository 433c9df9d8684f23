/* The kernels of recurrent layers that are not matrix products; the scalar reference. */
#include "kernels/numerics/fmath.h"
#include "kernels/numerics/ops_scalar.h"
#include "kernels/recurrent/gates.h"

void kern_scalar_exp(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = fmath_exp_f32(x[i]);
}

void kern_scalar_scale(float *y, const float *x, float factor, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] * factor;
}

double kern_scalar_squares(const float *x, size_t n)
{
    double lane[KERN_UNIT_LANES] = {0};
    for (size_t i = 0; i < n; i++)
        lane[i % KERN_UNIT_LANES] += (double)x[i] * (double)x[i];
    return kern_unit_sum(lane);
}

void kern_scalar_convolve(float *y, const struct kern_taps *taps, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float z = taps->bias ? taps->bias[i] : 0.0f;
        for (size_t j = 0; j < taps->n_taps; j++)
            if (taps->x[j])
                z = fmaf(taps->weights[j * taps->stride + i], taps->x[j][i], z);
        y[i] = taps->bare ? z : z / (1.0f + fmath_exp_f32(-z));
    }
}

void kern_scalar_decays(const struct kern_decays *op)
{
    for (size_t i = 0; i < op->n; i++)
        op->y[i] = kern_recur_decay(op->dt[i], op->bias[i], op->decay);
}

static float add_chains(const float chain[KERN_STEP_CHAINS])
{
    return (chain[0] + chain[1]) + (chain[2] + chain[3]);
}

/** One token of one column of S, whose elements are KERN_CHUNK floats apart. */
static float step(float *s, const float *decay, const float *k, const float *q, float beta, float v,
                  size_t n_k)
{
    float held[KERN_STEP_CHAINS] = {0}, out[KERN_STEP_CHAINS] = {0};
    for (size_t c = 0; c < n_k; c++) {
        s[c * KERN_CHUNK] *= decay[c];
        held[c % KERN_STEP_CHAINS] = fmaf(k[c], s[c * KERN_CHUNK], held[c % KERN_STEP_CHAINS]);
    }
    float e = beta * (v - add_chains(held));
    for (size_t c = 0; c < n_k; c++) {
        s[c * KERN_CHUNK] = fmaf(k[c], e, s[c * KERN_CHUNK]);
        out[c % KERN_STEP_CHAINS] = fmaf(q[c], s[c * KERN_CHUNK], out[c % KERN_STEP_CHAINS]);
    }
    return add_chains(out);
}

void kern_scalar_steps(const struct kern_steps *op)
{
    for (size_t t = 0; t < op->n; t++) {
        size_t row = t * op->n_k;
        for (size_t lane = 0; lane < op->width; lane++)
            op->out[t * op->out_stride + lane] =
                step(op->s + lane, op->decay + row, op->k + row, op->q + row, op->beta[t],
                     op->v[t * op->v_stride + lane], op->n_k);
    }
}

void kern_scalar_triangle(const struct kern_triangle *op)
{
    for (size_t r = op->first; r < op->n_rows; r++) {
        float *acc = op->acc + r * KERN_CHUNK;
        for (size_t k = 0; k < r + op->diagonal; k++) {
            for (size_t lane = 0; lane < KERN_CHUNK; lane++)
                acc[lane] =
                    fmaf(op->w[r * KERN_CHUNK + k], op->x[k * KERN_CHUNK + lane], acc[lane]);
        }
    }
}
