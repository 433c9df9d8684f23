#include "kernels/cpu/attention/products.h"

#include <assert.h>
#include <string.h>

#include "kernels/operations.h"

enum {
    KEY_PADDING = 16, /* floats after a key: keys 4 KiB apart evict one another */
    N_GROUPS = KERN_KEY_BLOCK / KERN_BF16_GROUP
};
static_assert(KERN_KEY_BLOCK % KERN_BF16_GROUP == 0, "a block of keys is whole groups");

static bool is_float32(const struct kern_cpu *cpu)
{
    return cpu->attention_product.n_parts == 0;
}

/** Floats that 32 rows or tokens of n_k columns take in bfloat16. */
static size_t group_floats(const struct kern_cpu *cpu, size_t n_k)
{
    return kern_bf16_group_size(n_k, cpu->attention_product.n_parts) / 2;
}

static size_t value_groups(size_t value_size)
{
    return base_div_up(value_size, KERN_BF16_GROUP);
}

static uint16_t *bf16_of(float *floats)
{
    return (uint16_t *)(void *)floats;
}

/** Divide `memory`, which may be NULL; returns the floats that the parts take. */
static size_t divide(struct kern_key_block *b, const struct kern_cpu *cpu,
                     const struct kern_attention *op, float *memory)
{
    *b = (struct kern_key_block){.cpu = cpu,
                                 .head_size = op->head_size,
                                 .value_size = op->value_size,
                                 .k_stride = base_round_up(op->head_size + KEY_PADDING, 16),
                                 .v_stride = base_round_up(op->value_size + KEY_PADDING, 16)};
    float **const parts[] = {
        &b->k, &b->v, &b->scores, &b->packed_k, &b->packed_v, &b->packed_scores, &b->column};
    size_t sizes[] = {KERN_KEY_BLOCK * b->k_stride,
                      KERN_KEY_BLOCK * b->v_stride,
                      KERN_KEY_BLOCK * KERN_PANEL,
                      0,
                      0,
                      0,
                      0};
    if (!is_float32(cpu)) {
        sizes[3] = N_GROUPS * group_floats(cpu, op->head_size);
        sizes[4] = value_groups(op->value_size) * group_floats(cpu, KERN_KEY_BLOCK);
        sizes[5] = group_floats(cpu, KERN_KEY_BLOCK);
        sizes[6] = KERN_KEY_BLOCK;
    }
    size_t used = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        *parts[i] = memory ? memory + used : NULL;
        used += sizes[i];
    }
    return used;
}

size_t kern_key_block_floats(const struct kern_cpu *cpu, const struct kern_attention *op)
{
    struct kern_key_block b;
    return divide(&b, cpu, op, NULL);
}

size_t kern_query_panel_floats(const struct kern_cpu *cpu, size_t head_size)
{
    return is_float32(cpu) ? head_size * KERN_PANEL : group_floats(cpu, head_size);
}

void kern_key_block_open(struct kern_key_block *b, const struct kern_cpu *cpu,
                         const struct kern_attention *op, float *memory)
{
    (void)divide(b, cpu, op, memory);
    /* The rows after the last one of a group are multiplied too; zeros keep that harmless. */
    if (!is_float32(cpu)) {
        memset(b->packed_k, 0, N_GROUPS * group_floats(cpu, op->head_size) * sizeof(float));
        memset(b->packed_v, 0,
               value_groups(op->value_size) * group_floats(cpu, KERN_KEY_BLOCK) * sizeof(float));
    }
}

void kern_query_panel_pack(const struct kern_key_block *b, const float *q, size_t stride, size_t n,
                           float *out)
{
    const struct kern_kernels *kernels = &b->cpu->kernels;
    struct kern_panel_pack op = {
        .x = q,
        .x_stride = stride,
        .n_lanes = n,
        .n_k = b->head_size,
        .n_parts = b->cpu->attention_product.n_parts,
        .out = out,
    };
    if (is_float32(b->cpu))
        kernels->panel_pack(&op);
    else
        kernels->bf16_pack_panel(&op);
}

void kern_key_block_pack(const struct kern_key_block *b, size_t n_keys)
{
    if (is_float32(b->cpu))
        return;
    const struct kern_kernels *kernels = &b->cpu->kernels;
    unsigned n_parts = b->cpu->attention_product.n_parts;
    for (size_t j = 0; j < n_keys; j++) {
        size_t group = j / KERN_BF16_GROUP * group_floats(b->cpu, b->head_size);
        kernels->bf16_pack_row(b->k + j * b->k_stride, b->head_size, n_parts, j % KERN_BF16_GROUP,
                               bf16_of(b->packed_k + group));
    }
    memset(b->column, 0, KERN_KEY_BLOCK * sizeof(float));
    for (size_t i = 0; i < b->value_size; i++) {
        size_t group = i / KERN_BF16_GROUP * group_floats(b->cpu, KERN_KEY_BLOCK);
        for (size_t j = 0; j < n_keys; j++)
            b->column[j] = b->v[j * b->v_stride + i];
        kernels->bf16_pack_row(b->column, KERN_KEY_BLOCK, n_parts, i % KERN_BF16_GROUP,
                               bf16_of(b->packed_v + group));
    }
}

void kern_key_block_multiply_keys(const struct kern_key_block *b, const float *queries,
                                  size_t n_keys)
{
    const struct kern_product *product = &b->cpu->attention_product;
    bool float32 = is_float32(b->cpu);
    product->multiply(&(struct kern_fma_tile){
        .w = float32 ? b->k : b->packed_k,
        .w_row = float32 ? b->k_stride : kern_product_row_floats(product, b->head_size),
        .w_col = 1,
        .x = queries,
        .acc = b->scores,
        .n_rows = n_keys,
        .n_k = b->head_size,
    });
}

void kern_key_block_multiply_values(const struct kern_key_block *b, size_t n_keys, float *out)
{
    const struct kern_product *product = &b->cpu->attention_product;
    struct kern_fma_tile op = {
        .w = b->v,
        .w_row = 1,
        .w_col = b->v_stride,
        .x = b->scores,
        .acc = out,
        .n_rows = b->value_size,
        .n_k = n_keys,
        .resume = true,
    };
    if (!is_float32(b->cpu)) {
        b->cpu->kernels.bf16_pack_lanes(b->scores, n_keys, product->n_parts,
                                        bf16_of(b->packed_scores));
        op.w = b->packed_v;
        op.w_row = kern_product_row_floats(product, KERN_KEY_BLOCK);
        op.w_col = 1;
        op.x = b->packed_scores;
    }
    product->multiply(&op);
}
