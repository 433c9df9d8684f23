/* Panels with NEON: rows to lanes, lanes to rows, and what is multiplied lane by lane. */
#include <arm_neon.h>

#include "base/arithmetic.h"
#include "kernels/cpu/neon/neon.h"

enum { WIDTH = 4, LINE = 16 };

/** m[i] element j becomes m[j] element i. */
static inline void transpose(float32x4_t m[WIDTH])
{
    float64x2_t a = (float64x2_t)vtrn1q_f32(m[0], m[1]), b = (float64x2_t)vtrn2q_f32(m[0], m[1]);
    float64x2_t c = (float64x2_t)vtrn1q_f32(m[2], m[3]), d = (float64x2_t)vtrn2q_f32(m[2], m[3]);
    m[0] = (float32x4_t)vtrn1q_f64(a, c);
    m[1] = (float32x4_t)vtrn1q_f64(b, d);
    m[2] = (float32x4_t)vtrn2q_f64(a, c);
    m[3] = (float32x4_t)vtrn2q_f64(b, d);
}

/** Four lanes, all of them tokens. */
static void pack_four(const float *x, size_t x_stride, size_t n_k, float *out)
{
    size_t k = 0;
    for (; k + WIDTH <= n_k; k += WIDTH) {
        float32x4_t m[WIDTH];
        for (size_t i = 0; i < WIDTH; i++)
            m[i] = vld1q_f32(x + i * x_stride + k);
        transpose(m);
        for (size_t i = 0; i < WIDTH; i++)
            vst1q_f32(out + (k + i) * KERN_PANEL, m[i]);
    }
    for (; k < n_k; k++)
        for (size_t i = 0; i < WIDTH; i++)
            out[k * KERN_PANEL + i] = x[i * x_stride + k];
}

void kern_neon_panel_pack(const struct kern_panel_pack *op)
{
    const float *x = op->x;
    float *out = op->out;
    size_t x_stride = op->x_stride, n_k = op->n_k, n_whole = op->n_lanes / WIDTH * WIDTH;
    /* A cache line of each row at a time: rows may lie where they evict one another. */
    for (size_t k = 0; k < n_k; k += LINE)
        for (size_t lane = 0; lane < n_whole; lane += WIDTH)
            pack_four(x + lane * x_stride + k, x_stride, base_min(n_k - k, LINE),
                      out + k * KERN_PANEL + lane);
    for (size_t lane = n_whole; lane < KERN_PANEL; lane++)
        for (size_t k = 0; k < n_k; k++)
            out[k * KERN_PANEL + lane] = lane < op->n_lanes ? x[lane * x_stride + k] : 0.0f;
}

/** Rows r .. r + 3 of lanes lane .. lane + 3, of which n_lanes are tokens. */
static void unpack_block(const struct kern_panel_unpack *op, size_t r, size_t lane, size_t n_lanes)
{
    float32x4_t m[WIDTH];
    for (size_t i = 0; i < WIDTH; i++)
        m[i] = vld1q_f32(op->acc + (r + i) * KERN_PANEL + lane);
    transpose(m);
    for (size_t i = 0; i < n_lanes; i++) {
        float *y = op->y + (lane + i) * op->y_stride + r;
        float32x4_t value = m[i];
        if (op->scale != 1.0f)
            value = vmulq_n_f32(value, op->scale);
        if (op->bias)
            value = vaddq_f32(value, vld1q_f32(op->bias + r));
        if (op->accumulate)
            value = vaddq_f32(value, vld1q_f32(y));
        vst1q_f32(y, value);
    }
}

void kern_neon_panel_unpack(const struct kern_panel_unpack *op)
{
    size_t n_whole = op->n_rows / WIDTH * WIDTH;
    /* Lanes outside: rows of y one after the other, as the processor expects what is written. */
    for (size_t lane = 0; lane < op->n_lanes; lane += WIDTH)
        for (size_t r = 0; r < n_whole; r += WIDTH)
            unpack_block(op, r, lane, base_min(op->n_lanes - lane, WIDTH));
    struct kern_panel_unpack rest = *op;
    rest.acc += n_whole * KERN_PANEL;
    rest.n_rows -= n_whole;
    rest.bias = op->bias ? op->bias + n_whole : NULL;
    rest.y += n_whole;
    kern_kernels_scalar.panel_unpack(&rest);
}

void kern_neon_panel_scale(float *acc, size_t n_rows, const float *factor)
{
    for (size_t r = 0; r < n_rows; r++) {
        for (size_t lane = 0; lane < KERN_PANEL; lane += WIDTH) {
            float *a = acc + r * KERN_PANEL + lane;
            vst1q_f32(a, vmulq_f32(vld1q_f32(a), vld1q_f32(factor + lane)));
        }
    }
}
