/* The operations that measure a row and then change it, beside norms. */
#include "kernels/cpu/operations.h"

#include "kernels/cpu/context.h"
#include "kernels/mixing.h"
#include "kernels/numerics/activation.h"
#include "kernels/recurrent/gates.h"

enum { ROWS = 8 /* that a thread takes at a time */ };

struct rows {
    const struct kern_ops *ops;
    const struct kern_sparsify *sparsify;
    const struct kern_stretch *stretch;
    const struct kern_match *match;
};

static void sparsify_rows(void *context, size_t index, unsigned thread)
{
    (void)thread;
    const struct rows *rows = context;
    const struct kern_sparsify *op = rows->sparsify;
    for (size_t r = index * ROWS; r < op->n_rows && r < (index + 1) * ROWS; r++)
        rows->ops->sparsify(op->x + r * op->width, op->width, op->scale, op->sample);
}

enum status kern_cpu_sparsify(struct kern_backend *b, const struct kern_sparsify *op,
                              struct status_why *why)
{
    (void)why;
    struct kern_cpu *cpu = kern_cpu_of(b);
    struct rows rows = {.ops = &cpu->kernels.ops, .sparsify = op};
    return kern_cpu_run(cpu, base_div_up(op->n_rows, ROWS), sparsify_rows, &rows);
}

static void stretch_rows(void *context, size_t index, unsigned thread)
{
    (void)thread;
    const struct rows *rows = context;
    const struct kern_stretch *op = rows->stretch;
    double least = (double)op->least * (double)op->width;
    for (size_t r = index * ROWS; r < op->n_rows && r < (index + 1) * ROWS; r++) {
        const float *x = op->x + r * op->width, *to = op->to + r * op->width;
        double squares = rows->ops->squares(x, op->width);
        float factor = kern_stretch_factor(squares, rows->ops->squares(to, op->width), least);
        if (op->accumulate)
            rows->ops->add_scaled(op->y + r * op->width, x, factor, op->width);
        else
            rows->ops->scale(op->y + r * op->width, x, factor, op->width);
    }
}

enum status kern_cpu_stretch(struct kern_backend *b, const struct kern_stretch *op,
                             struct status_why *why)
{
    (void)why;
    struct kern_cpu *cpu = kern_cpu_of(b);
    struct rows rows = {.ops = &cpu->kernels.ops, .stretch = op};
    return kern_cpu_run(cpu, base_div_up(op->n_rows, ROWS), stretch_rows, &rows);
}

/** The sum of products, as that of squares: in lanes, which are added by halves. */
static double product_of(const float *x, const float *y, size_t n)
{
    double lane[KERN_UNIT_LANES] = {0};
    for (size_t i = 0; i < n; i++)
        lane[i % KERN_UNIT_LANES] += (double)x[i] * (double)y[i];
    return kern_unit_sum(lane);
}

static void match_token(void *context, size_t t, unsigned thread)
{
    (void)thread;
    const struct rows *rows = context;
    const struct kern_match *op = rows->match;
    for (size_t s = 0, at = t * op->n_streams * op->width; s < op->n_streams;
         s++, at += op->width) {
        double product = product_of(op->k + at, op->q + at, op->width);
        rows->ops->scale(op->out + at, op->v + t * op->width, kern_match_share(product, op->width),
                         op->width);
    }
}

enum status kern_cpu_match(struct kern_backend *b, const struct kern_match *op,
                           struct status_why *why)
{
    (void)why;
    struct kern_cpu *cpu = kern_cpu_of(b);
    struct rows rows = {.ops = &cpu->kernels.ops, .match = op};
    return kern_cpu_run(cpu, op->n_tokens, match_token, &rows);
}
