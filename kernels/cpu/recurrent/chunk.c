#include "kernels/cpu/recurrent/chunk.h"

#include <assert.h>
#include <string.h>

#include "kernels/recurrent/gates.h"

static_assert((int)KERN_CHUNK == KERN_PANEL && (int)KERN_RECUR_LANES == KERN_PANEL,
              "tokens of a chunk and columns of v are lanes of a panel");

enum { SQUARE = KERN_CHUNK * KERN_PANEL };

/** Divide `memory`, which may be NULL; returns the floats that the parts take. */
static size_t divide(struct kern_recur_chunk *c, const struct kern_recur *op, float *memory)
{
    size_t dk = op->k_size, n_groups = kern_recur_n_groups(op), rows = base_round_up(dk, 16);
    *c = (struct kern_recur_chunk){.n = 0};
    float **const parts[] = {&c->own_s, &c->k,    &c->q, &c->scaled, &c->packed_k,
                             &c->solve, &c->read, &c->e, &c->out};
    const size_t sizes[] = {n_groups * dk * KERN_PANEL,
                            KERN_CHUNK * rows,
                            KERN_CHUNK * rows,
                            KERN_CHUNK * rows,
                            dk * KERN_PANEL,
                            SQUARE,
                            SQUARE,
                            n_groups * SQUARE,
                            SQUARE};
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

void kern_recur_chunk_open(struct kern_recur_chunk *chunk, const struct kern_recur *op,
                           float *memory)
{
    (void)divide(chunk, op, memory);
    /* Lanes behind dv stay 0. */
    memset(chunk->e, 0, kern_recur_n_groups(op) * SQUARE * sizeof(float));
}

/** What a record has of the chunk's tokens. */
struct record {
    float *s, *k, *e, *log;
};

static struct record record_at(const struct kern_recur *op, float *records, size_t group)
{
    struct record r = {.s = records + group * kern_recur_record_floats(op)};
    r.k = r.s + op->k_size * KERN_PANEL;
    r.e = r.k + op->k_size * KERN_CHUNK;
    r.log = r.e + SQUARE;
    return r;
}

void kern_recur_chunk_load(struct kern_recur_chunk *c, const struct kern_recur_head *head,
                           const float *records, size_t index)
{
    const struct kern_recur *op = head->op;
    c->n = index % KERN_CHUNK;
    c->s = index < KERN_CHUNK ? NULL : records;
    c->s_stride = kern_recur_record_floats(op);
    for (size_t group = 0; c->n > 0 && group < kern_recur_n_groups(op); group++) {
        /* The records are only read from. */
        struct record r = record_at(op, (float *)(uintptr_t)records, group);
        memcpy(c->k, r.k, c->n * op->k_size * sizeof(float));
        memcpy(c->e + group * SQUARE, r.e, c->n * KERN_PANEL * sizeof(float));
        memcpy(c->log, r.log, c->n * sizeof(double));
    }
}

void kern_recur_chunk_save(const struct kern_recur_chunk *c, const struct kern_recur_head *head,
                           float *records)
{
    const struct kern_recur *op = head->op;
    for (size_t group = 0; group < kern_recur_n_groups(op); group++) {
        struct record r = record_at(op, records, group);
        if (c->s && c->s != records)
            memcpy(r.s, c->s + group * c->s_stride, op->k_size * KERN_PANEL * sizeof(float));
        memcpy(r.k, c->k, c->n * op->k_size * sizeof(float));
        memcpy(r.e, c->e + group * SQUARE, c->n * KERN_PANEL * sizeof(float));
        memcpy(r.log, c->log, c->n * sizeof(double));
    }
}

static void scale_row(float *y, const float *x, float factor, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] * factor;
}

/** y = x divided by its length, times scale. */
static void load_row(const struct kern_recur *op, const float *x, float scale, float *y)
{
    double sums[KERN_UNIT_LANES] = {0};
    for (size_t i = 0; op->unit != KERN_UNIT_NONE && i < op->k_size; i++)
        sums[i % KERN_UNIT_LANES] += (double)x[i] * (double)x[i];
    scale_row(y, x, kern_unit_factor(op->unit, sums, op->eps, scale), op->k_size);
}

/** q, k, L and beta of rows first .. first + n - 1 of the chunk, which are rows of the operation.
 */
static void load_tokens(struct kern_recur_chunk *c, const struct kern_recur_head *head, size_t row,
                        size_t n)
{
    const struct kern_recur *op = head->op;
    size_t dk = op->k_size;
    size_t k_head =
        op->alternate ? head->head % op->n_k_heads : head->head / (op->n_heads / op->n_k_heads);
    double sum = c->n > 0 ? c->log[c->n - 1] : 0.0;
    for (size_t t = c->n; t < c->n + n; t++, row++) {
        load_row(op, op->k + row * op->stride + k_head * dk, 1.0f, c->k + t * dk);
        load_row(op, op->q + row * op->stride + k_head * dk, op->scale, c->q + t * dk);
        size_t gate = row * op->gate_stride + head->head;
        double dt = kern_recur_dt(op->dt[gate], head->dt_bias, op->dt_min);
        c->log[t] = sum += dt * (double)head->decay;
        c->beta[t] = op->beta ? kern_sigmoid_f32(op->beta[gate]) : (float)dt;
        c->decay[t] = (float)sum;
    }
    head->cpu->kernels.ops.exp(c->decay + c->n, n);
}

/** factors[i] = exp(at - L_i) for i < n. */
static void find_factors(struct kern_recur_chunk *c, const struct kern_cpu *cpu, double at,
                         size_t n)
{
    for (size_t i = 0; i < n; i++)
        c->factors[i] = (float)(at - c->log[i]);
    cpu->kernels.ops.exp(c->factors, n);
}

/** Rows of k or q times all k, to `out`. */
static void multiply_keys(const struct kern_recur_chunk *c, const struct kern_recur_head *head,
                          const float *rows, size_t n, float *out)
{
    size_t dk = head->op->k_size;
    head->cpu->kernels.fma_tile(&(struct kern_fma_tile){.w = rows + c->n * dk,
                                                        .w_row = dk,
                                                        .w_col = 1,
                                                        .x = c->packed_k,
                                                        .acc = out + c->n * KERN_PANEL,
                                                        .n_rows = n,
                                                        .n_k = dk});
}

/** How much of e_i goes into e_t and o_t. */
static void find_triangles(struct kern_recur_chunk *c, const struct kern_recur_head *head, size_t n)
{
    const struct kern_recur *op = head->op;
    head->cpu->kernels.panel_pack(c->k, op->k_size, c->n + n, op->k_size, c->packed_k);
    if (op->beta)
        multiply_keys(c, head, c->k, n, c->solve);
    multiply_keys(c, head, c->q, n, c->read);
    for (size_t t = c->n; t < c->n + n; t++) {
        float *solve = c->solve + t * KERN_PANEL, *read = c->read + t * KERN_PANEL;
        find_factors(c, head->cpu, c->log[t], t + 1);
        for (size_t i = 0; i <= t; i++)
            read[i] *= c->factors[i];
        for (size_t i = 0; op->beta && i < t; i++)
            solve[i] *= c->factors[i] * -c->beta[t];
    }
}

/** acc += rows of `scaled`, which are those of the chunk's new tokens, times S of a group. */
static void multiply_state(const struct kern_recur_chunk *c, const struct kern_recur_head *head,
                           size_t group, size_t n, float *acc)
{
    if (!c->s)
        return;
    size_t dk = head->op->k_size;
    head->cpu->kernels.fma_tile(&(struct kern_fma_tile){.w = c->scaled + c->n * dk,
                                                        .w_row = dk,
                                                        .w_col = 1,
                                                        .x = c->s + group * c->s_stride,
                                                        .acc = acc + c->n * KERN_PANEL,
                                                        .n_rows = n,
                                                        .n_k = dk,
                                                        .resume = true});
}

/** Columns of v that a group has. */
static size_t group_width(const struct kern_recur *op, size_t group)
{
    return base_min(op->v_size - group * KERN_PANEL, KERN_PANEL);
}

static const float *v_at(const struct kern_recur_head *head, size_t row, size_t group)
{
    const struct kern_recur *op = head->op;
    return op->v + row * op->stride + head->head * op->v_size + group * KERN_PANEL;
}

/** e of the chunk's new tokens. */
static void find_changes(struct kern_recur_chunk *c, const struct kern_recur_head *head, size_t row,
                         size_t n)
{
    const struct kern_recur *op = head->op;
    size_t end = c->n + n;
    for (size_t t = c->n; op->beta && c->s && t < end; t++)
        scale_row(c->scaled + t * op->k_size, c->k + t * op->k_size, -c->beta[t] * c->decay[t],
                  op->k_size);
    for (size_t group = 0; group < kern_recur_n_groups(op); group++) {
        float *e = c->e + group * SQUARE;
        for (size_t t = c->n; t < end; t++)
            scale_row(e + t * KERN_PANEL, v_at(head, row + t - c->n, group), c->beta[t],
                      group_width(op, group));
        if (!op->beta)
            continue;
        multiply_state(c, head, group, n, e);
        head->cpu->kernels.ops.triangle(
            &(struct kern_triangle){.w = c->solve, .x = e, .acc = e, .first = c->n, .n_rows = end});
    }
}

/** Outputs of the chunk's new tokens. */
static void find_outputs(struct kern_recur_chunk *c, const struct kern_recur_head *head, size_t row,
                         size_t n)
{
    const struct kern_recur *op = head->op;
    size_t end = c->n + n;
    for (size_t t = c->n; c->s && t < end; t++)
        scale_row(c->scaled + t * op->k_size, c->q + t * op->k_size, c->decay[t], op->k_size);
    for (size_t group = 0; group < kern_recur_n_groups(op); group++) {
        memset(c->out + c->n * KERN_PANEL, 0, n * KERN_PANEL * sizeof(float));
        multiply_state(c, head, group, n, c->out);
        head->cpu->kernels.ops.triangle(&(struct kern_triangle){.w = c->read,
                                                                .x = c->e + group * SQUARE,
                                                                .acc = c->out,
                                                                .first = c->n,
                                                                .n_rows = end,
                                                                .diagonal = true});
        for (size_t t = c->n; t < end; t++) {
            size_t out_row = (row + t - c->n) * op->n_heads + head->head;
            float *out = op->out + out_row * op->v_size + group * KERN_PANEL;
            const float *sums = c->out + t * KERN_PANEL, *v = v_at(head, row + t - c->n, group);
            for (size_t i = 0; i < group_width(op, group); i++)
                out[i] = op->skip ? sums[i] + head->skip * v[i] : sums[i];
        }
    }
}

void kern_recur_chunk_add(struct kern_recur_chunk *c, const struct kern_recur_head *head,
                          size_t row, size_t n)
{
    assert(c->n + n <= KERN_CHUNK);
    load_tokens(c, head, row, n);
    find_triangles(c, head, n);
    find_changes(c, head, row, n);
    find_outputs(c, head, row, n);
    c->n += n;
}

void kern_recur_chunk_finish(struct kern_recur_chunk *c, const struct kern_recur_head *head)
{
    const struct kern_recur *op = head->op;
    const struct kern_kernels *kernels = &head->cpu->kernels;
    size_t dk = op->k_size, panel = dk * KERN_PANEL;
    assert(c->n == KERN_CHUNK);
    find_factors(c, head->cpu, c->log[KERN_CHUNK - 1], KERN_CHUNK);
    for (size_t t = 0; t < KERN_CHUNK; t++)
        scale_row(c->scaled + t * dk, c->k + t * dk, c->factors[t], dk);
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
