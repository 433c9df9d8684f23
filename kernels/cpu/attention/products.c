#include "kernels/cpu/attention/products.h"

#include <assert.h>
#include <string.h>

#include "kernels/operations.h"

enum {
    KEY_PADDING = 16, /* floats after a key: keys 4 KiB apart evict one another */
    N_GROUPS = KERN_KEY_BLOCK / KERN_BF16_GROUP
};
static_assert(KERN_KEY_BLOCK % KERN_BF16_GROUP == 0, "a block of keys is whole groups");

enum { MOST = KERN_ATTENTION_MOST, RUN = KERN_INT16_BLOCK };
static_assert((int64_t)RUN * MOST * MOST <= INT32_MAX, "the sum of a run has 32 bits");
/* They are any integers up to MOST, and of no type. */
static const struct kern_integers format = {.run = RUN, .largest = MOST};
static const struct kern_integers short_format = {.run = RUN / 2, .largest = MOST};

/** In float32 where integers do not come in whole chunks. */
static struct kern_product product_of(const struct kern_cpu *cpu, const struct kern_attention *op)
{
    const struct kern_product float32 = {.kind = KERN_PRODUCTS_FLOAT32,
                                         .multiply = cpu->kernels.fma_tile};
    bool whole = (op->head_size | op->value_size) % KERN_ROUNDED_COLUMNS == 0;
    return kern_product_is_integer(&cpu->attention_product) && !whole ? float32
                                                                      : cpu->attention_product;
}

static bool is_float32(const struct kern_key_block *b)
{
    return b->product.kind == KERN_PRODUCTS_FLOAT32;
}

static bool is_integer(const struct kern_key_block *b)
{
    return kern_product_is_integer(&b->product);
}

static const struct kern_integers *format_of(size_t n_k)
{
    return n_k % RUN ? &short_format : &format;
}

/** Floats before the scales of a row of integers. */
static size_t scales_at(size_t n_k)
{
    return kern_int16_floats(n_k, format_of(n_k)->run);
}

/** Floats of such a row. */
static size_t row_floats(size_t n_k)
{
    return base_round_up(scales_at(n_k) + n_k / format_of(n_k)->run, 16);
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
                                 .product = product_of(cpu, op),
                                 .head_size = op->head_size,
                                 .value_size = op->value_size,
                                 .k_stride = base_round_up(op->head_size + KEY_PADDING, 16),
                                 .v_stride = base_round_up(op->value_size + KEY_PADDING, 16)};
    size_t d = op->head_size, dv = op->value_size;
    size_t packed_k = 0, packed_v = 0, packed_scores = 0, integers = 0;
    if (is_integer(b)) {
        packed_k = KERN_KEY_BLOCK * row_floats(d);
        packed_v = dv * row_floats(KERN_KEY_BLOCK);
        packed_scores = kern_product_panel_floats(&b->product, KERN_KEY_BLOCK);
        integers = KERN_KEY_BLOCK * base_max(d, 2 * dv) / 2;
    } else if (!is_float32(b)) {
        packed_k = N_GROUPS * group_floats(cpu, d);
        packed_v = value_groups(dv) * group_floats(cpu, KERN_KEY_BLOCK);
        packed_scores = group_floats(cpu, KERN_KEY_BLOCK);
    }
    float *last;
    const struct {
        float **at;
        size_t n;
    } parts[] = {{&b->k, KERN_KEY_BLOCK * b->k_stride},
                 {&b->v, KERN_KEY_BLOCK * b->v_stride},
                 {&b->scores, KERN_KEY_BLOCK * KERN_PANEL},
                 {&b->packed_k, packed_k},
                 {&b->packed_v, packed_v},
                 {&b->packed_scores, packed_scores},
                 {&b->column, is_float32(b) ? 0 : KERN_KEY_BLOCK},
                 {&last, integers}};
    size_t used = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        *parts[i].at = memory ? memory + used : NULL;
        used += parts[i].n;
    }
    b->integers = (int16_t *)(void *)last;
    return used;
}

size_t kern_key_block_floats(const struct kern_cpu *cpu, const struct kern_attention *op)
{
    struct kern_key_block b;
    return divide(&b, cpu, op, NULL);
}

size_t kern_query_panel_floats(const struct kern_cpu *cpu, const struct kern_attention *op)
{
    struct kern_product product = product_of(cpu, op);
    return kern_product_panel_floats(&product, op->head_size);
}

void kern_key_block_open(struct kern_key_block *b, const struct kern_cpu *cpu,
                         const struct kern_attention *op, float *memory)
{
    (void)divide(b, cpu, op, memory);
    if (is_integer(b)) { /* the values' scales are in the scores */
        for (size_t i = 0; i < b->value_size; i++)
            b->packed_v[i * row_floats(RUN) + scales_at(RUN)] = 1.0f;
    } else if (!is_float32(b)) {
        /* The rows after the last one of a group are multiplied too; zeros keep that harmless. */
        memset(b->packed_k, 0, N_GROUPS * group_floats(cpu, op->head_size) * sizeof(float));
        memset(b->packed_v, 0,
               value_groups(op->value_size) * group_floats(cpu, KERN_KEY_BLOCK) * sizeof(float));
    }
}

void kern_query_panel_pack(const struct kern_key_block *b, const float *q, size_t stride, size_t n,
                           float *out)
{
    kern_product_pack(
        &b->product, &b->cpu->kernels,
        (struct kern_panel_pack){
            .x = q, .x_stride = stride, .n_lanes = n, .n_k = b->head_size, .out = out});
}

/** Lay n rows of n_k integers as the product reads them. */
static void lay_rows(const struct kern_key_block *b, const int16_t *integers, size_t n, size_t n_k,
                     float *rows)
{
    for (size_t i = 0; i < n; i++)
        b->cpu->kernels.int16_row(integers + i * n_k, n_k, format_of(n_k),
                                  rows + i * row_floats(n_k));
}

/** Keys as rows of integers; then values, rows of a column of them each. What has been written is
 * not read at once, and by longer vectors: that would wait. */
static void pack_integers(const struct kern_key_block *b, size_t n_keys)
{
    const struct kern_kernels *kernels = &b->cpu->kernels;
    size_t d = b->head_size, dv = b->value_size, run = format_of(d)->run;
    int16_t *integers = b->integers, *turned = integers + KERN_KEY_BLOCK * dv;
    for (size_t j = 0; j < n_keys; j++) {
        const float *k = b->k + j * b->k_stride;
        float *scales = b->packed_k + j * row_floats(d) + scales_at(d);
        for (size_t i = 0; i < d; i += run)
            scales[i / run] = kernels->int16_round(k + i, run, MOST, integers + j * d + i);
    }
    lay_rows(b, integers, n_keys, d, b->packed_k);
    for (size_t j = 0; j < n_keys; j++)
        b->column[j] = kernels->int16_round(b->v + j * b->v_stride, dv, MOST, integers + j * dv);
    memset(integers + n_keys * dv, 0, (KERN_KEY_BLOCK - n_keys) * dv * sizeof *integers);
    memset(b->column + n_keys, 0, (KERN_KEY_BLOCK - n_keys) * sizeof *b->column);
    kernels->int16_turn(integers, KERN_KEY_BLOCK, dv, turned);
    lay_rows(b, turned, dv, KERN_KEY_BLOCK, b->packed_v);
}

void kern_key_block_pack(const struct kern_key_block *b, size_t n_keys)
{
    if (is_float32(b))
        return;
    if (is_integer(b)) {
        pack_integers(b, n_keys);
        return;
    }
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
    const struct kern_product *product = &b->product;
    bool float32 = is_float32(b);
    size_t w_row = float32         ? b->k_stride
                   : is_integer(b) ? row_floats(b->head_size)
                                   : kern_product_row_floats(product, b->head_size);
    product->multiply(&(struct kern_fma_tile){
        .w = float32 ? b->k : b->packed_k,
        .w_row = w_row,
        .w_col = 1,
        .x = queries,
        .acc = b->scores,
        .n_rows = n_keys,
        .n_k = b->head_size,
        .format = format_of(b->head_size),
    });
}

/** With what the softmax made of the scores, times the scales of the values. */
static void multiply_integer_values(const struct kern_key_block *b, size_t n_keys, float *out)
{
    memset(b->scores + n_keys * KERN_PANEL, 0,
           (KERN_KEY_BLOCK - n_keys) * KERN_PANEL * sizeof(float));
    b->cpu->kernels.int16_pack_lanes(&(struct kern_lanes_pack){.x = b->scores,
                                                               .factors = b->column,
                                                               .n_k = RUN,
                                                               .largest = MOST,
                                                               .out = b->packed_scores});
    b->product.multiply(&(struct kern_fma_tile){.w = b->packed_v,
                                                .w_row = row_floats(RUN),
                                                .x = b->packed_scores,
                                                .acc = out,
                                                .n_rows = b->value_size,
                                                .n_k = RUN,
                                                .resume = true,
                                                .format = &format});
}

void kern_key_block_multiply_values(const struct kern_key_block *b, size_t n_keys, float *out)
{
    if (is_integer(b)) {
        multiply_integer_values(b, n_keys, out);
        return;
    }
    const struct kern_product *product = &b->product;
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
    if (!is_float32(b)) {
        b->cpu->kernels.bf16_pack_lanes(b->scores, n_keys, product->n_parts,
                                        bf16_of(b->packed_scores));
        op.w = b->packed_v;
        op.w_row = kern_product_row_floats(product, KERN_KEY_BLOCK);
        op.w_col = 1;
        op.x = b->packed_scores;
    }
    product->multiply(&op);
}
