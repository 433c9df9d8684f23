#include "kernels/cpu/gemm/product.h"
#include "base/arithmetic.h"

#include "kernels/cpu/amx/amx.h"

enum {
    SLAB_FLOAT32 = 512,
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
    if (options->amx == KERN_AMX_HARDWARE && options->isa_cap >= KERN_ISA_AVX512)
        state = kern_amx_try(kernels);
    if (state == KERN_AMX_WORKS)
        choose_bf16(out, &kern_amx_hardware, fast);
    else if (state == KERN_AMX_REFUSED)
        *remark = "the system refuses AMX to this process: products are computed in float32\n";
    else if (state == KERN_AMX_WRONG)
        *remark = "AMX gave a wrong product when it was tried: products are computed in float32\n";
    else if (fast)
        *remark = "precision fast needs AMX, which is not there or not allowed: products are "
                  "computed as with high, in float32\n";
}

size_t kern_product_row_floats(const struct kern_product *product, size_t n_k)
{
    /* One cache line more than a row: rows at a power of two would share a cache set. */
    if (product->n_parts == 0)
        return base_round_up(n_k, 16) + 16;
    return base_round_up(n_k, KERN_BF16_CHUNK_K) / 2 * product->n_parts;
}

size_t kern_product_panel_floats(const struct kern_product *product, size_t n_k)
{
    if (product->n_parts == 0)
        return n_k * KERN_PANEL;
    return kern_bf16_group_size(n_k, product->n_parts) / 2;
}
