/* The causal convolution: a task is some channels of all tokens. */
#include <string.h>

#include "kernels/cpu/recurrent/vector.h"

enum { CHANNELS = 128 /* of a task */ };

struct convolve {
    const struct kern_cpu *cpu;
    const struct kern_convolve *op;
    const float *weights; /* [W, C]: turned */
    const float *bias;
    size_t n_channels, n_taps, state_floats;
};

/** x of the token `back` before the first one of a run; NULL: before the sequence. */
static const float *row_before(const struct convolve *c, const struct kern_run *run, size_t back)
{
    const struct kern_convolve *op = c->op;
    if (run->parent != KERN_NONE) {
        run = &op->runs[run->parent];
        if (back <= run->n)
            return op->x + (run->row + run->n - back) * op->x_stride;
        back -= run->n;
    }
    if (back > run->index)
        return NULL;
    return op->states + (size_t)run->from * c->state_floats +
           (c->n_taps - 1 - back) * c->n_channels;
}

/** x of token t - back of a run. */
static const float *tap_row(const struct convolve *c, const struct kern_run *run, size_t t,
                            size_t back)
{
    return back <= t ? c->op->x + (run->row + t - back) * c->op->x_stride
                     : row_before(c, run, back - t);
}

static void convolve_channels(void *context, size_t index, unsigned thread)
{
    (void)thread;
    const struct convolve *c = context;
    const struct kern_convolve *op = c->op;
    size_t first = index * CHANNELS, n = base_min(c->n_channels - first, CHANNELS);
    struct kern_taps taps = {.weights = c->weights + first,
                             .bias = c->bias ? c->bias + first : NULL,
                             .n_taps = c->n_taps,
                             .stride = c->n_channels};
    for (size_t i = 0; i < op->n_runs && !kern_cpu_cancelled(c->cpu); i++) {
        const struct kern_run *run = &op->runs[i];
        for (size_t t = 0; t < run->n; t++) {
            for (size_t j = 0; j < c->n_taps; j++) {
                const float *row = tap_row(c, run, t, c->n_taps - 1 - j);
                taps.x[j] = row ? row + first : NULL;
            }
            c->cpu->kernels.ops.convolve(op->y + (run->row + t) * c->n_channels + first, &taps, n);
        }
    }
}

/** The last rows of a run. It may have begun with the state that they replace: first row first. */
static void save(const struct convolve *c, const struct kern_run *run)
{
    float *to = c->op->states + (size_t)run->to * c->state_floats;
    for (size_t back = c->n_taps - 1; back > 0; back--, to += c->n_channels) {
        const float *row = tap_row(c, run, run->n, back);
        if (row)
            memmove(to, row, c->n_channels * sizeof *to);
    }
}

static void turn_weights(const struct kern_cpu *cpu, const struct kern_weight *w, float *out)
{
    float row[KERN_CONVOLVE_MAX];
    for (size_t r = 0; r < w->n_rows; r++) {
        kern_weight_decode_row(cpu, w, r, row);
        for (size_t j = 0; j < w->n_cols; j++)
            out[j * w->n_rows + r] = row[j] * w->scale;
    }
}

enum status kern_cpu_convolve(struct kern_backend *b, const struct kern_convolve *op,
                              struct status_why *why)
{
    struct kern_cpu *cpu = kern_cpu_of(b);
    struct convolve c = {.cpu = cpu,
                         .op = op,
                         .n_channels = op->weight->n_rows,
                         .n_taps = op->weight->n_cols,
                         .state_floats = kern_convolve_state_bytes(op) / sizeof(float)};
    void *scratch;
    size_t n_floats = (c.n_taps + 1) * c.n_channels;
    enum status status = kern_cpu_scratch(cpu, &scratch, n_floats * sizeof(float), why);
    if (status)
        return status;
    float *weights = scratch, *bias = weights + c.n_taps * c.n_channels;
    turn_weights(cpu, op->weight, weights);
    c.weights = weights;
    c.bias = kern_vector_decode(cpu, op->bias, bias);
    status = kern_cpu_run(cpu, base_div_up(c.n_channels, CHANNELS), convolve_channels, &c);
    for (size_t i = 0; !status && i < op->n_runs; i++) {
        if (op->runs[i].to >= 0)
            save(&c, &op->runs[i]);
    }
    return status;
}
