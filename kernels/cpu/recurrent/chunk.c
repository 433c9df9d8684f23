#include "kernels/cpu/recurrent/chunk.h"

#include <assert.h>
#include <string.h>

#include "kernels/recurrent.h"
#include "kernels/recurrent/gates.h"

static_assert((int)KERN_CHUNK == KERN_PANEL && (int)KERN_RECUR_LANES == KERN_PANEL,
              "tokens of a chunk and columns of v are lanes of a panel");

enum { SQUARE = KERN_CHUNK * KERN_PANEL };

/** Divide `memory`, which may be NULL; returns the floats that the parts take. */
static size_t divide(struct kern_recur_chunk *c, const struct kern_recur *op, float *memory)
{
    size_t dk = op->k_size, n_groups = kern_recur_n_groups(op), rows = KERN_CHUNK * dk;
    float **const parts[] = {&c->own_s, &c->k,    &c->q, &c->scaled, &c->packed_k,
                             &c->solve, &c->read, &c->e, &c->out};
    const size_t sizes[] = {n_groups * dk * KERN_PANEL, rows,  rows, rows, rows, SQUARE, SQUARE,
                            n_groups * SQUARE,          SQUARE};
    size_t used = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        *parts[i] = memory ? memory + used : NULL;
        used += sizes[i];
    }
    return used;
}

size_t kern_recur_chunk_floats(const struct kern_recur *op)
{
    struct kern_recur_chunk c;
    return divide(&c, op, NULL);
}

void kern_recur_chunk_open(struct kern_recur_chunk *c, const struct kern_recur_head *head,
                           float *memory)
{
    *c = (struct kern_recur_chunk){.head = head};
    (void)divide(c, head->op, memory);
    /* Lanes past dv stay 0. */
    memset(c->e, 0, kern_recur_n_groups(head->op) * SQUARE * sizeof(float));
}

/** Where a record has k, e and L of the chunk's tokens: floats from its beginning. */
static size_t record_k(const struct kern_recur *op)
{
    return op->k_size * KERN_PANEL;
}

static size_t record_e(const struct kern_recur *op)
{
    return record_k(op) + op->k_size * KERN_CHUNK;
}

static size_t record_log(const struct kern_recur *op)
{
    return record_e(op) + SQUARE;
}

void kern_recur_chunk_load(struct kern_recur_chunk *c, const float *records, size_t index)
{
    const struct kern_recur *op = c->head->op;
    c->n = index % KERN_CHUNK;
    c->s = index < KERN_CHUNK ? NULL : records;
    c->s_stride = kern_recur_record_floats(op);
    if (c->n == 0)
        return;
    memcpy(c->k, records + record_k(op), c->n * op->k_size * sizeof(float));
    memcpy(c->log, records + record_log(op), c->n * sizeof(double));
    for (size_t group = 0; group < kern_recur_n_groups(op); group++)
        memcpy(c->e + group * SQUARE, records + group * c->s_stride + record_e(op),
               c->n * KERN_PANEL * sizeof(float));
}

void kern_recur_chunk_save(const struct kern_recur_chunk *c, float *records)
{
    const struct kern_recur *op = c->head->op;
    float *record = records;
    for (size_t group = 0; group < kern_recur_n_groups(op); group++) {
        if (c->s && c->s != records)
            memcpy(record, c->s + group * c->s_stride, record_k(op) * sizeof(float));
        memcpy(record + record_k(op), c->k, c->n * op->k_size * sizeof(float));
        memcpy(record + record_e(op), c->e + group * SQUARE, c->n * KERN_PANEL * sizeof(float));
        memcpy(record + record_log(op), c->log, c->n * sizeof(double));
        record += kern_recur_record_floats(op);
    }
}

void kern_recur_load_row(const struct kern_recur_head *head, const float *x, float scale, float *y)
{
    const struct kern_recur *op = head->op;
    const struct kern_ops *ops = &head->cpu->kernels.ops;
    double squares = op->unit == KERN_UNIT_NONE ? 0 : ops->squares(x, op->k_size);
    ops->scale(y, x, kern_unit_factor(op->unit, squares, op->eps, scale), op->k_size);
}

/** Have n floats brought to L2. */
static void fetch(const float *x, size_t n)
{
    enum { LINE = 16 };
    for (size_t i = 0; i < n; i += LINE)
        __builtin_prefetch(x + i, 0, 2);
}

/** q, k, L and beta of the new tokens; the next chunk's rows are fetched meanwhile. */
static void load_tokens(struct kern_recur_chunk *c)
{
    const struct kern_recur_head *head = c->head;
    const struct kern_recur *op = head->op;
    size_t dk = op->k_size, row = c->row, k_column = kern_recur_k_column(head);
    double sum = c->n > 0 ? c->log[c->n - 1] : 0.0;
    for (size_t t = c->n; t < c->end; t++, row++) {
        size_t at = row * op->stride + k_column;
        kern_recur_load_row(head, op->k + at, 1.0f, c->k + t * dk);
        kern_recur_load_row(head, op->q + at, op->scale, c->q + t * dk);
        double dt =
            kern_recur_dt(op->dt[row * op->dt_stride + head->head], *head->dt_bias, op->dt_min);
        c->log[t] = sum += dt * (double)head->decay;
        c->beta[t] =
            op->beta ? kern_sigmoid_f32(op->beta[row * op->beta_stride + head->head]) : (float)dt;
        c->decay[t] = (float)sum;
        if (row + KERN_CHUNK >= c->run_end)
            continue;
        size_t later = KERN_CHUNK * op->stride;
        fetch(op->k + at + later, dk);
        fetch(op->q + at + later, dk);
        fetch(op->v + row * op->stride + later + head->head * op->v_size, op->v_size);
    }
    head->cpu->kernels.ops.exp(c->decay + c->n, c->end - c->n);
}

/** factors[i] = exp(at - L_i) for i < n. */
static void find_factors(struct kern_recur_chunk *c, double at, size_t n)
{
    for (size_t i = 0; i < n; i++)
        c->factors[i] = (float)(at - c->log[i]);
    c->head->cpu->kernels.ops.exp(c->factors, n);
}

/** Rows first .. end - 1 of `scaled`: those of `rows` times factors. */
static void scale_rows(const struct kern_recur_chunk *c, const float *rows, const float *factors,
                       size_t first)
{
    size_t dk = c->head->op->k_size;
    for (size_t t = first; t < c->end; t++)
        c->head->cpu->kernels.ops.scale(c->scaled + t * dk, rows + t * dk, factors[t], dk);
}

/** Rows n .. end - 1 of acc += those of w [KERN_CHUNK, dk] times the panel array x [dk]. */
static void multiply_rows(const struct kern_recur_chunk *c, const float *w, const float *x,
                          float *acc)
{
    size_t dk = c->head->op->k_size;
    c->head->cpu->kernels.fma_tile(&(struct kern_fma_tile){.w = w + c->n * dk,
                                                           .w_row = dk,
                                                           .w_col = 1,
                                                           .x = x,
                                                           .acc = acc + c->n * KERN_PANEL,
                                                           .n_rows = c->end - c->n,
                                                           .n_k = dk,
                                                           .resume = true});
}

/** Rows n .. end - 1 of a panel array of the chunk: 0. */
static void clear_rows(const struct kern_recur_chunk *c, float *panel)
{
    memset(panel + c->n * KERN_PANEL, 0, (c->end - c->n) * KERN_PANEL * sizeof *panel);
}

/** How much of e_i goes into e_t and o_t. */
static void find_triangles(struct kern_recur_chunk *c)
{
    const struct kern_recur *op = c->head->op;
    c->head->cpu->kernels.panel_pack(&(struct kern_panel_pack){.x = c->k,
                                                               .x_stride = op->k_size,
                                                               .n_lanes = c->end,
                                                               .n_k = op->k_size,
                                                               .out = c->packed_k});
    clear_rows(c, c->read);
    multiply_rows(c, c->q, c->packed_k, c->read);
    if (op->beta) {
        clear_rows(c, c->solve);
        multiply_rows(c, c->k, c->packed_k, c->solve);
    }
    for (size_t t = c->n; t < c->end; t++) {
        float *solve = c->solve + t * KERN_PANEL, *read = c->read + t * KERN_PANEL;
        find_factors(c, c->log[t], t + 1);
        for (size_t i = 0; i <= t; i++)
            read[i] *= c->factors[i];
        for (size_t i = 0; op->beta && i < t; i++)
            solve[i] *= c->factors[i] * -c->beta[t];
    }
}

/** Columns of v that a group has. */
static size_t group_width(const struct kern_recur *op, size_t group)
{
    return base_min(op->v_size - group * KERN_PANEL, KERN_PANEL);
}

/** v of new token t. */
static const float *v_at(const struct kern_recur_chunk *c, size_t t, size_t group)
{
    const struct kern_recur *op = c->head->op;
    return op->v + (c->row + t - c->n) * op->stride + c->head->head * op->v_size +
           group * KERN_PANEL;
}

/** e of the new tokens. */
static void find_changes(struct kern_recur_chunk *c)
{
    const struct kern_recur *op = c->head->op;
    const struct kern_ops *ops = &c->head->cpu->kernels.ops;
    bool forgets = op->beta && c->s;
    for (size_t t = c->n; t < c->end; t++)
        c->factors[t] = -c->beta[t] * c->decay[t];
    if (forgets)
        scale_rows(c, c->k, c->factors, c->n);
    for (size_t group = 0; group < kern_recur_n_groups(op); group++) {
        float *e = c->e + group * SQUARE;
        for (size_t t = c->n; t < c->end; t++)
            ops->scale(e + t * KERN_PANEL, v_at(c, t, group), c->beta[t], group_width(op, group));
        if (forgets)
            multiply_rows(c, c->scaled, c->s + group * c->s_stride, e);
        if (op->beta)
            ops->triangle(&(struct kern_triangle){
                .w = c->solve, .x = e, .acc = e, .first = c->n, .n_rows = c->end});
    }
}

/** The outputs of a group, from `out` to where they belong. */
static void write_outputs(const struct kern_recur_chunk *c, size_t group)
{
    const struct kern_recur_head *head = c->head;
    const struct kern_recur *op = head->op;
    size_t n = group_width(op, group);
    for (size_t t = c->n; t < c->end; t++) {
        size_t out_row = (c->row + t - c->n) * op->n_heads + head->head;
        float *sums = c->out + t * KERN_PANEL;
        if (op->skip)
            head->cpu->kernels.ops.add_scaled(sums, v_at(c, t, group), head->skip, n);
        memcpy(op->out + out_row * op->v_size + group * KERN_PANEL, sums, n * sizeof *sums);
    }
}

static void find_outputs(struct kern_recur_chunk *c)
{
    if (c->s)
        scale_rows(c, c->q, c->decay, c->n);
    for (size_t group = 0; group < kern_recur_n_groups(c->head->op); group++) {
        clear_rows(c, c->out);
        if (c->s)
            multiply_rows(c, c->scaled, c->s + group * c->s_stride, c->out);
        c->head->cpu->kernels.ops.triangle(&(struct kern_triangle){.w = c->read,
                                                                   .x = c->e + group * SQUARE,
                                                                   .acc = c->out,
                                                                   .first = c->n,
                                                                   .n_rows = c->end,
                                                                   .diagonal = true});
        write_outputs(c, group);
    }
}

void kern_recur_chunk_add(struct kern_recur_chunk *c, size_t row, size_t n, size_t run_end)
{
    assert(c->n + n <= KERN_CHUNK);
    c->row = row;
    c->end = c->n + n;
    c->run_end = run_end;
    load_tokens(c);
    find_triangles(c);
    find_changes(c);
    find_outputs(c);
    c->n = c->end;
}

void kern_recur_chunk_finish(struct kern_recur_chunk *c)
{
    const struct kern_recur *op = c->head->op;
    const struct kern_kernels *kernels = &c->head->cpu->kernels;
    size_t dk = op->k_size, panel = dk * KERN_PANEL;
    assert(c->n == KERN_CHUNK && c->end == KERN_CHUNK);
    find_factors(c, c->log[KERN_CHUNK - 1], KERN_CHUNK);
    scale_rows(c, c->k, c->factors, 0);
    _Alignas(64) float decay[KERN_PANEL];
    for (size_t lane = 0; lane < KERN_PANEL; lane++)
        decay[lane] = c->decay[KERN_CHUNK - 1];
    for (size_t group = 0; group < kern_recur_n_groups(op); group++) {
        float *s = c->own_s + group * panel;
        if (c->s && c->s != c->own_s)
            memcpy(s, c->s + group * c->s_stride, panel * sizeof(float));
        if (c->s)
            kernels->panel_scale(s, dk, decay);
        kernels->fma_tile(&(struct kern_fma_tile){.w = c->scaled,
                                                  .w_row = 1,
                                                  .w_col = dk,
                                                  .x = c->e + group * SQUARE,
                                                  .acc = s,
                                                  .n_rows = dk,
                                                  .n_k = KERN_CHUNK,
                                                  .resume = c->s != NULL});
    }
    c->s = c->own_s;
    c->s_stride = panel;
    c->n = 0;
}
