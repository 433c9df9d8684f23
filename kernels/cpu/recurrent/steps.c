#include "kernels/cpu/recurrent/steps.h"

#include <assert.h>
#include <string.h>

#include "base/arithmetic.h"
#include "kernels/recurrent/gates.h"

static_assert((int)KERN_RECUR_LANES == KERN_CHUNK, "a row of s is as wide as a group of columns");

static size_t state_floats(const struct kern_recur *op)
{
    return kern_recur_n_groups(op) * kern_recur_record_floats(op);
}

/** Floats of a chunk of k, of q or of the decays. */
static size_t row_floats(const struct kern_recur *op)
{
    return KERN_CHUNK * op->k_size;
}

size_t kern_recur_steps_floats(const struct kern_recur *op)
{
    return state_floats(op) + 3 * row_floats(op);
}

void kern_recur_steps_open(struct kern_recur_steps *steps, const struct kern_recur_head *head,
                           float *memory)
{
    float *rows = memory + state_floats(head->op);
    size_t n = row_floats(head->op);
    *steps = (struct kern_recur_steps){
        .head = head, .s = memory, .k = rows, .q = rows + n, .decay = rows + 2 * n};
}

void kern_recur_steps_load(struct kern_recur_steps *steps, const float *records)
{
    size_t n_bytes = state_floats(steps->head->op) * sizeof(float);
    if (records)
        memcpy(steps->s, records, n_bytes);
    else
        memset(steps->s, 0, n_bytes);
}

void kern_recur_steps_save(const struct kern_recur_steps *steps, float *records)
{
    memcpy(records, steps->s, state_floats(steps->head->op) * sizeof(float));
}

static void load_tokens(struct kern_recur_steps *steps, size_t first, size_t n)
{
    const struct kern_recur_head *head = steps->head;
    const struct kern_recur *op = head->op;
    const struct kern_decay decay = {head->decay, op->dt_min, op->least_log};
    size_t dk = op->k_size, k_column = kern_recur_k_column(head);
    for (size_t t = 0; t < n; t++) {
        size_t row = first + t;
        const struct kern_decays decays = {.y = steps->decay + t * dk,
                                           .dt = op->dt + row * op->dt_stride + head->head * dk,
                                           .bias = head->dt_bias,
                                           .decay = &decay,
                                           .n = dk};
        head->cpu->kernels.ops.decays(&decays);
        kern_recur_load_row(head, op->k + row * op->stride + k_column, 1.0f, steps->k + t * dk);
        kern_recur_load_row(head, op->q + row * op->stride + k_column, op->scale,
                            steps->q + t * dk);
        steps->beta[t] = kern_sigmoid_f32(op->beta[row * op->beta_stride + head->head]);
    }
}

void kern_recur_steps_add(struct kern_recur_steps *steps, size_t row, size_t n)
{
    const struct kern_recur_head *head = steps->head;
    const struct kern_recur *op = head->op;
    assert(n <= KERN_CHUNK);
    load_tokens(steps, row, n);
    for (size_t group = 0; group < kern_recur_n_groups(op); group++) {
        size_t column = head->head * op->v_size + group * KERN_RECUR_LANES;
        head->cpu->kernels.ops.steps(&(struct kern_steps){
            .s = steps->s + group * kern_recur_record_floats(op),
            .decay = steps->decay,
            .k = steps->k,
            .q = steps->q,
            .beta = steps->beta,
            .v = op->v + row * op->stride + column,
            .v_stride = op->stride,
            .out = op->out + row * op->n_heads * op->v_size + column,
            .out_stride = op->n_heads * op->v_size,
            .n = n,
            .n_k = op->k_size,
            .width = base_min(op->v_size - group * KERN_RECUR_LANES, KERN_RECUR_LANES)});
    }
}
