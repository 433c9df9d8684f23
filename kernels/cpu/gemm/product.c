#include "kernels/cpu/gemm/product.h"
#include "base/arithmetic.h"

#include "kernels/cpu/amx/amx.h"
#include "kernels/quant/rows.h"

enum {
    SLAB_FLOAT32 = 512,
    SLAB_INT16 = 256, /* 32 tokens of it take 23 KiB */
    SLAB_INT8 = 512,  /* 28 KiB */
    /* 32 tokens or rows of it fill 32 KiB of the L1 cache, in one part or two. */
    SLAB_TRIPLES = 256,
    SLAB_BF16 = 512
};

static void choose_bf16(struct kern_product *out, const struct kern_amx_products *amx, bool fast)
{
    *out = (struct kern_product){
        .kind = fast ? KERN_PRODUCTS_BF16 : KERN_PRODUCTS_BF16_TRIPLES,
        .multiply = fast ? amx->multiply_one : amx->multiply_triple,
        .n_parts = fast ? 1 : 2,
        .slab_k = fast ? SLAB_BF16 : SLAB_TRIPLES,
        .row_grain = KERN_BF16_GROUP,
    };
}

void kern_product_choose(struct kern_product *out, const struct kern_kernels *kernels,
                         const struct kern_cpu_options *options, const char **remark)
{
    bool fast = options->precision == KERN_PRECISION_FAST;
    *remark = "";
    *out = (struct kern_product){
        .kind = KERN_PRODUCTS_FLOAT32,
        .multiply = kernels->fma_tile,
        .slab_k = SLAB_FLOAT32,
        .row_grain = 1,
    };
    if (options->gemm != KERN_GEMM_OWN && fast)
        *remark = "precision fast does not concern OpenBLAS's products, which are float32\n";
    if (options->precision == KERN_PRECISION_EXACT || options->gemm != KERN_GEMM_OWN)
        return;
    if (options->amx == KERN_AMX_EMULATED) {
        choose_bf16(out, &kern_amx_emulated, fast);
        return;
    }
    enum kern_amx_state state = KERN_AMX_ABSENT;
    if (options->amx == KERN_AMX_HARDWARE && options->isa_cap >= KERN_ISA_COUNT - 1)
        state = kern_amx_try(kernels);
    if (state == KERN_AMX_WORKS)
        choose_bf16(out, &kern_amx_hardware, fast);
    else if (state == KERN_AMX_REFUSED)
        *remark = "the system refuses AMX to this process: products are computed as without it\n";
    else if (state == KERN_AMX_WRONG)
        *remark =
            "AMX gave a wrong product when it was tried: products are computed as without it\n";
}

void kern_product_choose_integers(struct kern_product *out, const struct kern_kernels *kernels,
                                  const struct kern_cpu_options *options,
                                  const struct kern_product *others, int room)
{
    *out = (struct kern_product){0};
    if (others->kind != KERN_PRODUCTS_FLOAT32 || options->precision == KERN_PRECISION_EXACT ||
        options->gemm != KERN_GEMM_OWN)
        return;
    bool fast = options->precision == KERN_PRECISION_FAST;
    *out = (struct kern_product){
        .kind = fast ? KERN_PRODUCTS_INT8 : KERN_PRODUCTS_INT16,
        .multiply = fast ? kernels->int8_tile : kernels->int16_tile,
        .largest = fast ? KERN_INT8_MAX - room : KERN_INT16_MAX,
        .slab_k = fast ? SLAB_INT8 : SLAB_INT16,
        .row_grain = 12, /* whole groups of 3 or 6, the rows of a microkernel */
    };
}

void kern_product_choose_words(struct kern_product *out, const struct kern_kernels *kernels,
                               const struct kern_product *bytes)
{
    *out = *bytes;
    out->words = true;
    out->multiply = kernels->words_tile;
    out->slab_k = SLAB_INT16;
}

size_t kern_product_row_floats(const struct kern_product *product, size_t n_k)
{
    /* One cache line more than a row: rows at a power of two would share a cache set. */
    switch (kern_product_layout(product)) {
    case KERN_PRODUCTS_FLOAT32:
        return base_round_up(n_k, 16) + 16;
    case KERN_PRODUCTS_INT16: /* integers, and a scale and a minimum per 16 columns at most */
        return base_round_up(kern_int16_floats(n_k, 16) + 2 * n_k / 16, 16) + 16;
    case KERN_PRODUCTS_INT8:
        return base_round_up(kern_int8_floats(n_k, 16) + 2 * n_k / 16, 16) + 16;
    default:
        return base_round_up(n_k, KERN_BF16_CHUNK_K) / 2 * product->n_parts;
    }
}

size_t kern_product_panel_floats(const struct kern_product *product, size_t n_k)
{
    switch (kern_product_layout(product)) {
    case KERN_PRODUCTS_FLOAT32:
        return n_k * KERN_PANEL;
    case KERN_PRODUCTS_INT16:
        return n_k / KERN_ROUNDED_COLUMNS * (sizeof(struct kern_int16_chunk) / sizeof(float));
    case KERN_PRODUCTS_INT8:
        return n_k / KERN_ROUNDED_COLUMNS * (sizeof(struct kern_int8_chunk) / sizeof(float));
    default:
        return kern_bf16_group_size(n_k, product->n_parts) / 2;
    }
}

size_t kern_product_copy_floats(const struct kern_product *product)
{
    return product->slab_k * KERN_ROWS_WORK_BYTES / sizeof(float);
}

size_t kern_product_work_floats(const struct kern_product *product)
{
    /* A row, decoded; in integers also the neutral copy of its blocks, smaller than itself. */
    size_t rows = product->kind == KERN_PRODUCTS_FLOAT32 ? 0
                  : kern_product_is_integer(product)     ? 2
                                                         : 1;
    return rows * product->slab_k + kern_product_copy_floats(product);
}

void kern_product_pack(const struct kern_product *product, const struct kern_kernels *kernels,
                       struct kern_panel_pack op)
{
    op.n_parts = product->n_parts;
    op.largest = product->largest;
    switch (product->kind) {
    case KERN_PRODUCTS_FLOAT32:
        kernels->panel_pack(&op);
        break;
    case KERN_PRODUCTS_INT16:
        kernels->int16_pack(&op);
        break;
    case KERN_PRODUCTS_INT8:
        (product->words ? kernels->words_pack : kernels->int8_pack)(&op);
        break;
    default:
        kernels->bf16_pack_panel(&op);
    }
}
