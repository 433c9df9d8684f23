#include "kernels/cuda/walk.h"

#include "kernels/cuda/k_product.h"

enum { ROWS_ALIGNMENT = 128 /* multiple of the lanes of a group, and of what products like */ };

struct kern_cuda_walk kern_cuda_walk_of(struct kern_cuda *cuda, size_t n_rows, size_t n_vocab,
                                        size_t tile_vocab)
{
    struct kern_cuda_walk walk = {.cuda = cuda, .n_vocab = n_vocab};
    walk.max_rows = kern_cuda_min(n_rows, KERN_CUDA_WALK_ROWS);
    /* Products of halves are planned for one number of rows, however few there are. */
    size_t planned = kern_cuda_min(KERN_CUDA_WALK_ROWS, cuda->options.product_tokens);
    walk.max_rows =
        kern_cuda_uses_halves(cuda) ? kern_cuda_min(walk.max_rows, planned) : walk.max_rows;
    walk.stride = kern_cuda_uses_halves(cuda)
                      ? planned
                      : kern_cuda_divide_up(walk.max_rows, ROWS_ALIGNMENT) * ROWS_ALIGNMENT;
    walk.tile_vocab = kern_cuda_min(tile_vocab, n_vocab);
    return walk;
}

void kern_cuda_walk_divide(const struct kern_cuda_walk *walk, struct kern_cuda_walk_head *head,
                           size_t n_tiles, struct kern_cuda_arena *arena)
{
    size_t n_cols = head->head->matrix->n_cols;
    if (kern_cuda_uses_halves(walk->cuda))
        head->hidden_memory =
            kern_cuda_take(arena, kern_cuda_operand_bytes(walk->cuda, walk->stride, n_cols));
    head->weights =
        kern_cuda_take(arena, kern_cuda_operand_bytes(walk->cuda, walk->tile_vocab, n_cols));
    head->logits = kern_cuda_take(arena, n_tiles * walk->tile_vocab * walk->stride * sizeof(float));
}

static enum status find_product(const struct kern_cuda_walk *walk,
                                const struct kern_cuda_walk_head *head, size_t n,
                                const struct kern_cuda_product **product, struct status_why *why)
{
    return kern_cuda_product_find(walk->cuda, KERN_CUDA_TOKENS_A, n, head->head->matrix->n_cols,
                                  walk->stride, product, why);
}

enum status kern_cuda_walk_prepare(const struct kern_cuda_walk *walk,
                                   struct kern_cuda_walk_head *head, struct status_why *why)
{
    const struct kern_cuda_product *product;
    size_t last = walk->n_vocab % walk->tile_vocab;
    enum status status = kern_cuda_vector(walk->cuda, head->head->bias, &head->bias, why);
    if (status != STATUS_OK || !kern_cuda_uses_halves(walk->cuda))
        return status;
    status = find_product(walk, head, walk->tile_vocab, &product, why);
    if (status == STATUS_OK && last > 0)
        status = find_product(walk, head, last, &product, why);
    return status;
}

enum status kern_cuda_walk_begin(struct kern_cuda_walk *walk, struct kern_cuda_walk_head *head,
                                 size_t first, size_t n_rows, struct status_why *why)
{
    size_t n_cols = head->head->matrix->n_cols;
    walk->n_rows = n_rows;
    head->rows = head->head->hidden + first * n_cols;
    if (!kern_cuda_uses_halves(walk->cuda))
        return STATUS_OK;
    return kern_cuda_split(walk->cuda, head->rows, n_rows, walk->stride, n_cols,
                           head->hidden_memory, &head->hidden, why);
}

static enum status multiply_exact(const struct kern_cuda_walk *walk,
                                  const struct kern_cuda_walk_head *head, size_t row, size_t n,
                                  const struct kern_cuda_operand *weights, float *logits,
                                  struct status_why *why)
{
    struct kern_exact_args args = {
        .a = head->rows,
        .b = weights->floats,
        .out = logits,
        .out_stride = walk->stride,
        .n_a = walk->n_rows,
        .n_b = n,
        .n_k = head->head->matrix->n_cols,
        .bias_b = head->bias ? head->bias + row : NULL,
        .scale = head->head->matrix->scale,
    };
    size_t n_blocks = kern_cuda_divide_up(args.n_a, KERN_EXACT_SIDE) *
                      kern_cuda_divide_up(args.n_b, KERN_EXACT_SIDE);
    return kern_cuda_run(walk->cuda, KERN_CUDA_EXACT, n_blocks, sizeof(struct kern_exact_shared),
                         &args, why);
}

static enum status multiply_halves(const struct kern_cuda_walk *walk,
                                   const struct kern_cuda_walk_head *head, size_t row, size_t n,
                                   const struct kern_cuda_operand *weights, float *logits,
                                   struct status_why *why)
{
    const struct kern_cuda_product *product;
    enum status status = find_product(walk, head, n, &product, why);
    /* All planned rows, so that logits have one stride; a walk is rarely short. */
    if (status == STATUS_OK)
        status = kern_cuda_multiply(walk->cuda, product, &weights->halves, &head->hidden.halves,
                                    walk->stride, logits, why);
    if (status != STATUS_OK)
        return status;
    struct kern_finish_args args = {
        .sums = logits,
        .out = logits,
        .sums_stride = walk->stride,
        .out_stride = walk->stride,
        .n_a = walk->n_rows,
        .n_b = n,
        .a_largest = head->hidden.largest,
        .b_largest = weights->largest,
        .bias_b = head->bias ? head->bias + row : NULL,
        .scale = head->head->matrix->scale,
    };
    return kern_cuda_run(walk->cuda, KERN_CUDA_FINISH,
                         kern_cuda_divide_up(args.n_a, KERN_FINISH_ELEMS) * n, 0, &args, why);
}

enum status kern_cuda_walk_multiply(const struct kern_cuda_walk *walk,
                                    struct kern_cuda_walk_head *head, size_t row, size_t n,
                                    float *logits, struct status_why *why)
{
    struct kern_cuda_operand weights;
    enum status status =
        kern_cuda_operand_get(walk->cuda, head->head->matrix, row, n, head->weights, &weights, why);
    if (status != STATUS_OK)
        return status;
    return kern_cuda_uses_halves(walk->cuda)
               ? multiply_halves(walk, head, row, n, &weights, logits, why)
               : multiply_exact(walk, head, row, n, &weights, logits, why);
}
