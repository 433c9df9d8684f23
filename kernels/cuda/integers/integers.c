#include "kernels/cuda/integers/integers.h"

#include "kernels/cuda/kernels/integers/pack.h"
#include "kernels/cuda/kernels/integers/product.h"
#include "kernels/cuda/operations.h"
#include "kernels/cuda/weights/weights.h"
#include "kernels/quant/integers.h"
#include "kernels/quant/registry.h"

bool kern_cuda_prefers_integers(unsigned compute_capability)
{
    return compute_capability == 86 || compute_capability == 89 || compute_capability == 120;
}

static struct kern_integer_form form_of(enum gguf_type type)
{
    return kern_integer_form_of(kern_quant_find(type)->plain);
}

bool kern_cuda_uses_integers(const struct kern_cuda *cuda, enum gguf_type type)
{
    return cuda->in_integers && form_of(type).run > 0;
}

size_t kern_cuda_integer_bytes(enum gguf_type type, size_t n_rows, size_t n_cols)
{
    return base_div_up(n_rows, KERN_RECORD_ROWS) * kern_record_blocks(n_cols) *
           kern_record_words(form_of(type)) * sizeof(uint32_t);
}

size_t kern_cuda_token_bytes(size_t n_tokens, size_t n_cols)
{
    return base_div_up(n_tokens, KERN_RECORD_TOKENS) * kern_record_blocks(n_cols) *
           KERN_TOKEN_WORDS * sizeof(uint32_t);
}

/** What tokens are rounded to for weights of a type. */
static int largest_of(enum gguf_type type)
{
    return form_of(type).is_long ? KERN_INT16_LONG_MAX : KERN_INT16_MAX;
}

enum status kern_cuda_pack(struct kern_cuda *cuda, enum gguf_type type, const float *x,
                           size_t n_tokens, size_t n_cols, uint32_t *to, struct status_why *why)
{
    const struct kern_pack_args args = {.x = x,
                                        .to = {to, kern_record_blocks(n_cols)},
                                        .n_tokens = n_tokens,
                                        .n_cols = n_cols,
                                        .largest = (float)largest_of(type)};
    size_t n_records = base_div_up(n_tokens, KERN_RECORD_TOKENS) * args.to.n_blocks;
    return kern_cuda_run(cuda, KERN_CUDA_PACK, base_div_up(n_records, KERN_PACK_RECORDS), &args,
                         why);
}

/** The kernel for integers of this form. */
static enum kern_cuda_kernel kernel_of(struct kern_integer_form form)
{
    if (form.is_long && form.run == 32)
        return form.min ? KERN_CUDA_INTEGERS_LONG_32_MIN : KERN_CUDA_INTEGERS_LONG_32;
    if (form.is_long)
        return KERN_CUDA_INTEGERS_LONG_16;
    if (form.wide && form.run == 32)
        return form.min ? KERN_CUDA_INTEGERS_WIDE_32_MIN : KERN_CUDA_INTEGERS_WIDE_32;
    if (form.wide)
        return form.min ? KERN_CUDA_INTEGERS_WIDE_16_MIN : KERN_CUDA_INTEGERS_WIDE_16;
    if (form.run == 32)
        return form.min ? KERN_CUDA_INTEGERS_32_MIN : KERN_CUDA_INTEGERS_32;
    return KERN_CUDA_INTEGERS_16;
}

enum status kern_cuda_multiply_integers(struct kern_cuda *cuda, enum gguf_type type,
                                        const struct kern_integers_args *args,
                                        struct status_why *why)
{
    size_t n_blocks = base_div_up(args->n_rows, KERN_INTEGERS_ROWS) *
                      base_div_up(args->n_tokens, KERN_INTEGERS_TOKENS);
    return kern_cuda_run(cuda, kernel_of(form_of(type)), n_blocks, args, why);
}

/** A product's part of scratch memory. */
struct memory {
    uint32_t *tokens;
    void *weights; /* of a panel, where it is not kept */
};

/** Tokens first: a product of the same tokens with another weight has them where they are. */
static size_t divide(const struct kern_cuda *cuda, const struct kern_linear *op, void *base,
                     struct memory *memory)
{
    struct kern_cuda_arena arena = {.base = base};
    const struct kern_weight *w = op->weight;
    memory->tokens = kern_cuda_take(&arena, kern_cuda_token_bytes(op->n_tokens, w->n_cols));
    memory->weights = kern_cuda_take(
        &arena, kern_cuda_integer_bytes(w->type, kern_cuda_panel_rows(cuda, w), w->n_cols));
    return arena.used;
}

size_t kern_cuda_integer_linear_bytes(const struct kern_cuda *cuda, const struct kern_linear *op)
{
    struct memory unused;
    return divide(cuda, op, NULL, &unused);
}

/**
 * The tokens as records. Those of the product before serve if it had the same tokens, and nothing
 * used scratch memory between its call and ours.
 */
static enum status pack_tokens(struct kern_cuda *cuda, const struct kern_linear *op, uint32_t *to,
                               struct status_why *why)
{
    struct kern_cuda_packed_tokens *packed = &cuda->packed;
    size_t n_cols = op->weight->n_cols;
    bool is_there = op->same_x && packed->x == op->x && packed->n_tokens == op->n_tokens &&
                    packed->n_cols == n_cols && packed->largest == largest_of(op->weight->type) &&
                    packed->scratch_uses + 1 == cuda->scratch_uses;
    packed->scratch_uses = cuda->scratch_uses;
    if (is_there)
        return STATUS_OK;
    packed->n_tokens = op->n_tokens;
    packed->n_cols = n_cols;
    packed->largest = largest_of(op->weight->type);
    enum status status =
        kern_cuda_pack(cuda, op->weight->type, op->x, op->n_tokens, n_cols, to, why);
    packed->x = status ? NULL : op->x;
    return status;
}

/** Rows row .. row + n_rows - 1 of the weight. */
static enum status multiply(struct kern_cuda *cuda, const struct kern_linear *op,
                            const struct memory *memory, const float *bias, size_t row,
                            struct status_why *why)
{
    const struct kern_weight *w = op->weight;
    struct kern_cuda_operand weights;
    size_t n_rows = base_min(w->n_rows - row, kern_cuda_panel_rows(cuda, w));
    enum status status = kern_cuda_operand_get(cuda, (struct kern_cuda_weight_rows){w, row, n_rows},
                                               memory->weights, &weights, why);
    const struct kern_integers_args args = {
        .weights = weights.records,
        .tokens = memory->tokens,
        .n_blocks = kern_record_blocks(w->n_cols),
        .out = op->y + row,
        .row_step = 1,
        .token_step = op->y_stride,
        .n_rows = n_rows,
        .n_tokens = op->n_tokens,
        .bias = bias ? bias + row : NULL,
        .scale = w->scale,
        .accumulate = op->accumulate,
    };
    return status ? status : kern_cuda_multiply_integers(cuda, w->type, &args, why);
}

enum status kern_cuda_integer_linear(struct kern_cuda *cuda, const struct kern_linear *op,
                                     struct status_why *why)
{
    const struct kern_weight *w = op->weight;
    const float *bias;
    struct memory memory;
    void *scratch = NULL;
    enum status status = kern_cuda_vector(cuda, op->bias, &bias, why);
    if (!status)
        status = kern_cuda_scratch(cuda, &scratch, divide(cuda, op, NULL, &memory), why);
    if (status)
        return status;
    (void)divide(cuda, op, scratch, &memory);
    status = pack_tokens(cuda, op, memory.tokens, why);
    for (size_t row = 0; !status && row < w->n_rows; row += kern_cuda_panel_rows(cuda, w))
        status = multiply(cuda, op, &memory, bias, row, why);
    return status;
}
