/* The causal convolution: a task is some channels of all tokens. */
#include <assert.h>

#include "kernels/cpu/operations.h"
#include "kernels/cpu/recurrent/vector.h"
#include "kernels/recurrent/check.h"

enum { CHANNELS = 128 /* of a task */ };

struct convolve {
    const struct kern_cpu *cpu;
    const struct kern_convolve *op;
    struct kern_tap_rows rows;
    const float *weights; /* [n_taps, n_channels]: turned */
    const float *bias;
};

static void convolve_channels(void *context, size_t index, unsigned thread)
{
    (void)thread;
    const struct convolve *c = context;
    const struct kern_convolve *op = c->op;
    size_t n_channels = c->rows.n_channels, first = index * CHANNELS, step = c->rows.step;
    struct kern_taps taps = {.weights = c->weights + first,
                             .bias = c->bias ? c->bias + first : NULL,
                             .n_taps = c->rows.n_taps,
                             .stride = n_channels,
                             .bare = op->bare};
    for (size_t i = 0; i < op->n_runs && !kern_cpu_cancelled(c->cpu); i++) {
        const struct kern_run *run = &op->runs[i];
        for (size_t t = 0; t < run->n; t++) {
            for (size_t j = 0; j < taps.n_taps; j++) {
                const float *row = kern_tap_row(&c->rows, run, t, (taps.n_taps - 1 - j) * step);
                taps.x[j] = row ? row + first : NULL;
            }
            c->cpu->kernels.ops.convolve(op->y + (run->row + t) * n_channels + first, &taps,
                                         base_min(n_channels - first, CHANNELS));
        }
    }
}

static void turn_weights(const struct kern_cpu *cpu, const struct kern_weight *w, float *out)
{
    float row[KERN_CONVOLVE_MAX];
    for (size_t r = 0; r < w->n_rows; r++) {
        kern_weight_take_row(cpu, w, r, row);
        for (size_t j = 0; j < w->n_cols; j++)
            out[j * w->n_rows + r] = row[j];
    }
}

enum status kern_cpu_convolve(struct kern_backend *b, const struct kern_convolve *op,
                              struct status_why *why)
{
    struct kern_cpu *cpu = kern_cpu_of(b);
    size_t n_channels = op->weight->n_rows, n_taps = op->weight->n_cols;
    void *scratch;
    enum status status =
        kern_cpu_scratch(cpu, &scratch, (n_taps + 1) * n_channels * sizeof(float), why);
    if (status)
        return status;
    struct convolve c = {
        .cpu = cpu,
        .op = op,
        .rows = kern_tap_rows_of(op),
        .weights = scratch,
        .bias = kern_vector_decode(cpu, op->bias, (float *)scratch + n_taps * n_channels)};
    turn_weights(cpu, op->weight, scratch);
    status = kern_cpu_run(cpu, base_div_up(n_channels, CHANNELS), convolve_channels, &c);
    for (size_t i = 0; !status && i < op->n_runs; i++) {
        assert(c.rows.states || op->runs[i].to < 0 || n_taps == 1);
        for (size_t channel = 0; op->runs[i].to >= 0 && channel < n_channels; channel++)
            kern_tap_save(&c.rows, &op->runs[i], channel);
    }
    return status;
}
