/*
 * y = W x. A panel of the weight is decoded once and meets all tokens, some thousand at a time.
 * Exact products are a kernel of our own. The others are the library's, on halves.
 */
#include "kernels/cuda/integers/integers.h"
#include "kernels/cuda/kernels/exact/exact.h"
#include "kernels/cuda/kernels/product.h"
#include "kernels/cuda/operations.h"
#include "kernels/cuda/weights/weights.h"

enum { SUMS_ALIGNMENT = 64 };

/** A product, its sizes and its part of scratch memory. */
struct linear {
    struct kern_cuda *cuda;
    const struct kern_linear *op;
    const float *bias;
    size_t panel_rows;
    struct kern_cuda_product shape; /* of a panel; its n_tokens are a chunk of the tokens */
    void *weights, *tokens;
    float *sums;   /* [chunk, panel_rows] */
    bool deferred; /* sums go to y, and stay there */
};

/** Rows row .. row + n_rows - 1 of the weight, decoded. */
struct panel {
    size_t row, n_rows;
    struct kern_cuda_operand weights;
};

static size_t divide(struct linear *job, void *memory)
{
    struct kern_cuda_arena arena = {.base = memory};
    size_t chunk = job->shape.n_tokens, n_cols = job->shape.n_k;
    /* Tokens first: a product of the same tokens with another weight has them where they are. */
    if (kern_cuda_uses_halves(job->cuda)) {
        size_t n_room = base_round_up(job->op->n_tokens, chunk);
        job->tokens = kern_cuda_take(&arena, kern_cuda_operand_bytes(job->cuda, n_room, n_cols));
        job->sums = kern_cuda_take(&arena, chunk * job->panel_rows * sizeof(float));
    }
    job->weights =
        kern_cuda_take(&arena, kern_cuda_operand_bytes(job->cuda, job->panel_rows, n_cols));
    return arena.used;
}

static struct linear linear_of(struct kern_cuda *cuda, const struct kern_linear *op)
{
    struct linear job = {.cuda = cuda, .op = op, .shape = kern_cuda_linear_shape(cuda, op->weight)};
    job.panel_rows = job.shape.n_weights;
    return job;
}

size_t kern_cuda_linear_bytes(struct kern_backend *b, const struct kern_linear *op)
{
    if (kern_cuda_uses_integers(kern_cuda_of(b), op->weight->type))
        return kern_cuda_integer_linear_bytes(kern_cuda_of(b), op);
    struct linear job = linear_of(kern_cuda_of(b), op);
    size_t n_bytes = divide(&job, NULL);
    return kern_cuda_uses_halves(job.cuda)
               ? n_bytes + kern_cuda_deferred_bytes(op->n_tokens, op->weight->n_rows)
               : n_bytes;
}

static enum status multiply_exact(const struct linear *job, const struct panel *panel,
                                  struct status_why *why)
{
    const struct kern_linear *op = job->op;
    struct kern_exact_args args = {
        .a = panel->weights.floats,
        .b = op->x,
        .out = op->y + panel->row,
        .out_stride = op->y_stride,
        .n_a = panel->n_rows,
        .n_b = op->n_tokens,
        .n_k = op->weight->n_cols,
        .bias_a = job->bias ? job->bias + panel->row : NULL,
        .scale = op->weight->scale,
        .accumulate = op->accumulate,
    };
    return kern_cuda_exact(job->cuda, &args, why);
}

/** Sums of n_tokens tokens from `token` on to y. largest: of the tokens' rows. */
static enum status finish(const struct linear *job, const struct panel *panel, size_t token,
                          size_t n_tokens, const uint32_t *largest, struct status_why *why)
{
    const struct kern_linear *op = job->op;
    struct kern_finish_args args = {
        .sums = job->sums,
        .out = op->y + token * op->y_stride + panel->row,
        .sums_stride = panel->n_rows,
        .out_stride = op->y_stride,
        .n_a = panel->n_rows,
        .n_b = n_tokens,
        .a_largest = panel->weights.largest,
        .b_largest = largest + token,
        .bias_a = job->bias ? job->bias + panel->row : NULL,
        .scale = op->weight->scale,
        .accumulate = op->accumulate,
    };
    return kern_cuda_finish(job->cuda, &args, why);
}

static enum status multiply_halves(const struct linear *job, const struct panel *panel,
                                   const struct kern_cuda_operand *tokens, struct status_why *why)
{
    struct kern_cuda_product shape = job->shape;
    const struct kern_cuda_product *product;
    shape.n_weights = panel->n_rows;
    enum status status = kern_cuda_product_find(job->cuda, &shape, &product, why);
    for (size_t t = 0; !status && t < job->op->n_tokens; t += shape.n_tokens) {
        size_t n = base_min(job->op->n_tokens - t, shape.n_tokens);
        const uint16_t *x = tokens->halves + t * kern_cuda_depth(job->cuda, shape.n_k);
        float *sums = job->deferred ? job->op->y + t * job->op->y_stride + panel->row : job->sums;
        const struct kern_cuda_factors factors = {.weights = panel->weights.halves,
                                                  .tokens = x,
                                                  .n_tokens = kern_cuda_product_padded(product, n),
                                                  .c = sums,
                                                  .c_stride =
                                                      job->deferred ? job->op->y_stride : 0};
        status = kern_cuda_multiply(job->cuda, product, &factors, why);
        if (!status && !job->deferred)
            status = finish(job, panel, t, n, tokens->largest, why);
    }
    return status || !job->deferred ? status
                                    : kern_cuda_defer_columns(job->cuda, panel->row, panel->n_rows,
                                                              panel->weights.largest, why);
}

/** Everything that may itself use scratch memory, then ours. */
static enum status prepare(struct linear *job, struct status_why *why)
{
    enum status status = kern_cuda_vector(job->cuda, job->op->bias, &job->bias, why);
    if (!status)
        status = kern_cuda_products_prepare(job->cuda, &job->shape, job->op->weight->n_rows, why);
    void *memory = NULL;
    if (!status)
        status = kern_cuda_scratch(job->cuda, &memory, divide(job, NULL), why);
    (void)divide(job, memory);
    return status;
}

/** Tokens of all chunks. Only the last chunk is padded, no more than it must be. */
static size_t padded_tokens(const struct linear *job)
{
    size_t chunk = job->shape.n_tokens, n_tokens = job->op->n_tokens;
    size_t before = base_round_up(n_tokens, chunk) - chunk;
    return before + kern_cuda_product_padded(&job->shape, n_tokens - before);
}

/**
 * Whether the product's sums may wait where its results belong (deferred.h): they fill y and
 * nothing beside it, and the library finds them aligned as those that it was tried with.
 */
static bool can_defer(const struct linear *job)
{
    const struct kern_linear *op = job->op;
    size_t n_rows = op->weight->n_rows;
    bool aligned = (uintptr_t)op->y % SUMS_ALIGNMENT == 0 &&
                   (n_rows == job->panel_rows || n_rows * sizeof(float) % SUMS_ALIGNMENT == 0);
    return !op->accumulate && op->y_stride == n_rows && aligned &&
           padded_tokens(job) == op->n_tokens;
}

/**
 * The tokens in halves, to cuda->split. Those of the product before serve if it had the same
 * tokens, padded them as far, and nothing used scratch memory between its call and ours. Both have
 * n_tokens of n_cols at the beginning of that memory, so nothing else of ours overlaps them.
 */
static enum status split_tokens(const struct linear *job, struct status_why *why)
{
    struct kern_cuda *cuda = job->cuda;
    struct kern_cuda_split_tokens *split = &cuda->split;
    const struct kern_linear *op = job->op;
    size_t n_cols = job->shape.n_k, n_padded = padded_tokens(job);
    bool from_waiting = kern_cuda_is_waiting(cuda, op);
    bool is_there = op->same_x && !from_waiting && split->x == op->x &&
                    split->n_tokens == op->n_tokens && split->n_cols == n_cols &&
                    split->n_padded >= n_padded && split->scratch_uses + 1 == cuda->scratch_uses;
    split->scratch_uses = cuda->scratch_uses;
    if (is_there)
        return STATUS_OK;
    split->x = op->x;
    split->n_tokens = op->n_tokens;
    split->n_padded = n_padded;
    split->n_cols = n_cols;
    enum status status = kern_cuda_split(cuda, split, from_waiting, job->tokens, why);
    if (status)
        split->x = NULL;
    return status;
}

/** The panels, one after the other. */
static enum status multiply(struct linear *job, struct status_why *why)
{
    struct kern_cuda *cuda = job->cuda;
    const struct kern_weight *w = job->op->weight;
    bool halves = kern_cuda_uses_halves(cuda);
    enum status status = STATUS_OK;
    for (size_t row = 0; !status && row < w->n_rows; row += job->panel_rows) {
        struct panel panel = {.row = row, .n_rows = base_min(w->n_rows - row, job->panel_rows)};
        status = kern_cuda_operand_get(cuda, (struct kern_cuda_weight_rows){w, row, panel.n_rows},
                                       job->weights, &panel.weights, why);
        if (!status)
            status = halves ? multiply_halves(job, &panel, &cuda->split.operand, why)
                            : multiply_exact(job, &panel, why);
    }
    return status;
}

enum status kern_cuda_linear(struct kern_backend *b, const struct kern_linear *op,
                             struct status_why *why)
{
    struct kern_cuda *cuda = kern_cuda_of(b);
    if (kern_cuda_uses_integers(cuda, op->weight->type))
        return kern_cuda_integer_linear(cuda, op, why);
    struct linear job = linear_of(cuda, op);
    bool halves = kern_cuda_uses_halves(cuda);
    enum status status = kern_cuda_hold(cuda, op, why);
    if (!status)
        status = prepare(&job, why);
    if (!status && halves)
        status = split_tokens(&job, why);
    if (!status && halves && can_defer(&job))
        status =
            kern_cuda_defer(cuda, op, job.bias, cuda->split.operand.largest, &job.deferred, why);
    if (!status)
        status = multiply(&job, why);
    return kern_cuda_release(cuda, status);
}
