/*
 * y = W x: a panel of the weight is decoded once and meets all tokens, some thousand at a time.
 * Exact products are a kernel of our own; the others are the library's, on halves.
 */
#include "kernels/cuda/kernels/product.h"
#include "kernels/cuda/weights/weights.h"

/** A product, its sizes and its part of scratch memory. */
struct linear {
    struct kern_cuda *cuda;
    const struct kern_linear *op;
    const float *bias;
    size_t panel_rows;
    size_t chunk;    /* tokens of a product of halves */
    size_t n_room;   /* tokens of all chunks */
    size_t n_padded; /* the same, but the last one padded no more than it must be */
    void *weights, *tokens;
    float *sums; /* [chunk, panel_rows] */
};

static size_t divide(struct linear *job, void *memory)
{
    const struct kern_weight *w = job->op->weight;
    struct kern_cuda_arena arena = {.base = memory};
    job->panel_rows = kern_cuda_panel_rows(job->cuda, w);
    job->chunk = job->cuda->options.product_tokens;
    job->n_room = base_div_up(job->op->n_tokens, job->chunk) * job->chunk;
    /* Tokens first: a product of the same tokens with another weight has them where they are. */
    if (kern_cuda_uses_halves(job->cuda)) {
        job->tokens =
            kern_cuda_take(&arena, kern_cuda_operand_bytes(job->cuda, job->n_room, w->n_cols));
        job->sums = kern_cuda_take(&arena, job->chunk * job->panel_rows * sizeof(float));
    }
    job->weights =
        kern_cuda_take(&arena, kern_cuda_operand_bytes(job->cuda, job->panel_rows, w->n_cols));
    return arena.used;
}

size_t kern_cuda_linear_bytes(struct kern_backend *b, const struct kern_linear *op)
{
    struct linear job = {.cuda = kern_cuda_of(b), .op = op};
    return divide(&job, NULL);
}

static enum status multiply_exact(const struct linear *job, size_t row, size_t n_rows,
                                  const struct kern_cuda_operand *weights, struct status_why *why)
{
    const struct kern_linear *op = job->op;
    struct kern_exact_args args = {
        .a = weights->floats,
        .b = op->x,
        .out = op->y + row,
        .out_stride = op->y_stride,
        .n_a = n_rows,
        .n_b = op->n_tokens,
        .n_k = op->weight->n_cols,
        .bias_a = job->bias ? job->bias + row : NULL,
        .scale = op->weight->scale,
        .accumulate = op->accumulate,
    };
    size_t n_blocks =
        base_div_up(args.n_a, KERN_EXACT_SIDE) * base_div_up(args.n_b, KERN_EXACT_SIDE);
    return kern_cuda_run(job->cuda, KERN_CUDA_EXACT, n_blocks, sizeof(struct kern_exact_shared),
                         &args, why);
}

/** Sums of the tokens `token` .. to y. */
static enum status finish(const struct linear *job, size_t row, size_t n_rows, size_t token,
                          size_t n_tokens, const struct kern_cuda_operand *weights,
                          const struct kern_cuda_operand *tokens, struct status_why *why)
{
    const struct kern_linear *op = job->op;
    struct kern_finish_args args = {
        .sums = job->sums,
        .out = op->y + token * op->y_stride + row,
        .sums_stride = n_rows,
        .out_stride = op->y_stride,
        .n_a = n_rows,
        .n_b = n_tokens,
        .a_largest = weights->largest,
        .b_largest = tokens->largest + token,
        .bias_a = job->bias ? job->bias + row : NULL,
        .scale = op->weight->scale,
        .accumulate = op->accumulate,
    };
    size_t n_blocks = base_div_up(n_rows, KERN_FINISH_ELEMS) * n_tokens;
    return kern_cuda_run(job->cuda, KERN_CUDA_FINISH, n_blocks, 0, &args, why);
}

static enum status multiply_halves(const struct linear *job, size_t row, size_t n_rows,
                                   const struct kern_cuda_operand *weights,
                                   const struct kern_cuda_operand *tokens, struct status_why *why)
{
    size_t n_k = job->op->weight->n_cols;
    const struct kern_cuda_product *product;
    enum status status = kern_cuda_product_find(job->cuda, KERN_CUDA_TOKENS_B, n_rows, n_k,
                                                job->chunk, &product, why);
    for (size_t t = 0; status == STATUS_OK && t < job->op->n_tokens; t += job->chunk) {
        size_t n = base_min(job->op->n_tokens - t, job->chunk);
        struct kern_cuda_halves x = {tokens->halves.hi + t * n_k,
                                     tokens->halves.lo ? tokens->halves.lo + t * n_k : NULL};
        status = kern_cuda_multiply(job->cuda, product, &weights->halves, &x,
                                    kern_cuda_product_padded(product, n), job->sums, why);
        if (status == STATUS_OK)
            status = finish(job, row, n_rows, t, n, weights, tokens, why);
    }
    return status;
}

/** Products of n_rows rows are planned; the last chunk is padded for them, too. */
static enum status plan(struct linear *job, size_t n_rows, struct status_why *why)
{
    const struct kern_cuda_product *product;
    enum status status = kern_cuda_product_find(job->cuda, KERN_CUDA_TOKENS_B, n_rows,
                                                job->op->weight->n_cols, job->chunk, &product, why);
    if (status != STATUS_OK)
        return status;
    size_t before = job->n_room - job->chunk;
    size_t padded = before + kern_cuda_product_padded(product, job->op->n_tokens - before);
    job->n_padded = padded > job->n_padded ? padded : job->n_padded;
    return STATUS_OK;
}

/** Everything that may itself use scratch memory, then ours. */
static enum status prepare(struct linear *job, struct status_why *why)
{
    size_t n_rows = job->op->weight->n_rows;
    enum status status = kern_cuda_vector(job->cuda, job->op->bias, &job->bias, why);
    size_t n_bytes = divide(job, NULL);
    if (status == STATUS_OK && kern_cuda_uses_halves(job->cuda))
        status = plan(job, job->panel_rows, why);
    if (status == STATUS_OK && kern_cuda_uses_halves(job->cuda) && n_rows % job->panel_rows > 0)
        status = plan(job, n_rows % job->panel_rows, why);
    void *memory = NULL;
    if (status == STATUS_OK)
        status = kern_cuda_scratch(job->cuda, &memory, n_bytes, why);
    (void)divide(job, memory);
    return status;
}

/**
 * The tokens in halves: those of the product before, if it had the same tokens, padded them as far,
 * and nothing used scratch memory between its call and ours. Both jobs have n_tokens of n_cols at
 * the beginning of that memory, so nothing else of ours can lie on them.
 */
static enum status split_tokens(const struct linear *job, struct kern_cuda_operand *tokens,
                                struct status_why *why)
{
    struct kern_cuda *cuda = job->cuda;
    const struct kern_cuda_split_tokens *before = &cuda->split;
    const struct kern_linear *op = job->op;
    size_t n_cols = op->weight->n_cols;
    if (op->same_x && before->x == op->x && before->n_tokens == op->n_tokens &&
        before->n_cols == n_cols && before->n_padded >= job->n_padded &&
        before->scratch_uses + 1 == cuda->scratch_uses) {
        cuda->split.scratch_uses = cuda->scratch_uses;
        *tokens = before->operand;
        return STATUS_OK;
    }
    enum status status =
        kern_cuda_split(cuda, op->x, op->n_tokens, job->n_padded, n_cols, job->tokens, tokens, why);
    cuda->split = (struct kern_cuda_split_tokens){
        .x = status == STATUS_OK ? op->x : NULL,
        .n_tokens = op->n_tokens,
        .n_padded = job->n_padded,
        .n_cols = n_cols,
        .operand = *tokens,
        .scratch_uses = cuda->scratch_uses,
    };
    return status;
}

enum status kern_cuda_linear(struct kern_backend *b, const struct kern_linear *op,
                             struct status_why *why)
{
    struct kern_cuda *cuda = kern_cuda_of(b);
    struct linear job = {.cuda = cuda, .op = op};
    struct kern_cuda_operand tokens = {0};
    const struct kern_weight *w = op->weight;
    enum status status = prepare(&job, why);
    if (status == STATUS_OK && kern_cuda_uses_halves(cuda))
        status = split_tokens(&job, &tokens, why);
    for (size_t row = 0; status == STATUS_OK && row < w->n_rows; row += job.panel_rows) {
        size_t n_rows = base_min(w->n_rows - row, job.panel_rows);
        struct kern_cuda_operand weights;
        status = kern_cuda_operand_get(cuda, w, row, n_rows, job.weights, &weights, why);
        if (status != STATUS_OK)
            break;
        status = kern_cuda_uses_halves(cuda)
                     ? multiply_halves(&job, row, n_rows, &weights, &tokens, why)
                     : multiply_exact(&job, row, n_rows, &weights, why);
    }
    return status;
}
