#include "kernels/cpu/gemm/blas.h"

#include "kernels/cpu/gemm/gemm.h"
#include "kernels/operations.h"

/* Large enough for a foreign multiplication to be at its best, small beside a model. */
enum { PANEL_FLOATS = 4 << 20, MIN_PANEL_ROWS = 64 };

struct decoding {
    const struct kern_cpu *cpu;
    const struct kern_weight *weight;
    size_t first_row;
    float *out;
};

static void decode_one(void *context, size_t index, unsigned thread)
{
    (void)thread;
    const struct decoding *d = context;
    kern_weight_decode_row(d->cpu, d->weight, d->first_row + index,
                           d->out + index * d->weight->n_cols);
}

enum status kern_weight_decode(struct kern_cpu *cpu, const struct kern_weight *w, size_t row,
                               size_t n_rows, float *out)
{
    struct decoding d = {.cpu = cpu, .weight = w, .first_row = row, .out = out};
    return kern_cpu_run(cpu, n_rows, decode_one, &d);
}

size_t kern_blas_panel_rows(const struct kern_weight *w)
{
    return base_min(base_max(PANEL_FLOATS / w->n_cols, MIN_PANEL_ROWS), w->n_rows);
}

size_t kern_blas_panel_floats(const struct kern_weight *w)
{
    return kern_blas_panel_rows(w) * w->n_cols;
}

/** A part of a product: `share` rows or columns of the output. */
struct blas_parts {
    const struct kern_cpu *cpu;
    const struct kern_sgemm *op;
    size_t share;
};

static void multiply_part(void *context, size_t index, unsigned thread)
{
    (void)thread;
    enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112 }; /* of the interface cblas */
    const struct blas_parts *parts = context;
    const struct kern_sgemm *op = parts->op;
    bool by_rows = op->n_rows > op->n_cols;
    size_t first = index * parts->share;
    size_t row = by_rows ? first : 0, col = by_rows ? 0 : first;
    size_t n_rows = by_rows ? base_min(op->n_rows - row, parts->share) : op->n_rows;
    size_t n_cols = by_rows ? op->n_cols : base_min(op->n_cols - col, parts->share);
    parts->cpu->sgemm(ROW_MAJOR, PLAIN, TRANSPOSED, (int)n_rows, (int)n_cols, (int)op->n_k,
                      op->alpha, op->a + row * op->a_stride, (int)op->a_stride,
                      op->b + col * op->b_stride, (int)op->b_stride, op->beta,
                      op->c + row * op->c_stride + col, (int)op->c_stride);
}

enum status kern_blas_multiply(struct kern_cpu *cpu, const struct kern_sgemm *op)
{
    enum { GRAIN = 16 };
    size_t n = base_max(op->n_rows, op->n_cols);
    struct blas_parts parts = {
        cpu, op, base_round_up(base_div_up(n, base_pool_n_threads(cpu->pool)), GRAIN)};
    return kern_cpu_run(cpu, base_div_up(n, parts.share), multiply_part, &parts);
}

static void add_bias(const struct kern_linear *op, const float *bias)
{
    for (size_t t = 0; t < op->n_tokens; t++)
        for (size_t r = 0; r < op->weight->n_rows; r++)
            op->y[t * op->y_stride + r] += bias[r];
}

size_t kern_blas_linear_floats(const struct kern_linear *op)
{
    return kern_blas_panel_floats(op->weight) + (op->bias ? op->weight->n_rows : 0);
}

enum status kern_blas_linear(struct kern_cpu *cpu, const struct kern_linear *op,
                             struct status_why *why)
{
    const struct kern_weight *w = op->weight;
    size_t panel_rows = kern_blas_panel_rows(w);
    void *scratch;
    enum status status =
        kern_cpu_scratch(cpu, &scratch, kern_blas_linear_floats(op) * sizeof(float), why);
    if (status)
        return status;
    float *panel = scratch;
    for (size_t row = 0; !status && row < w->n_rows; row += panel_rows) {
        size_t n_rows = base_min(w->n_rows - row, panel_rows);
        status = kern_weight_decode(cpu, w, row, n_rows, panel);
        if (status)
            break;
        status = kern_blas_multiply(cpu, &(struct kern_sgemm){
                                             .n_rows = op->n_tokens,
                                             .n_cols = n_rows,
                                             .n_k = w->n_cols,
                                             .a = op->x,
                                             .a_stride = w->n_cols,
                                             .b = panel,
                                             .b_stride = w->n_cols,
                                             .c = op->y + row,
                                             .c_stride = op->y_stride,
                                             .alpha = w->scale,
                                             .beta = op->accumulate ? 1.0f : 0.0f,
                                         });
    }
    if (!status && op->bias) {
        float *bias = panel + kern_blas_panel_floats(w);
        kern_weight_take_row(cpu, op->bias, 0, bias);
        add_bias(op, bias);
    }
    return status;
}
