#include "kernels/cuda/walk.h"

#include "kernels/cuda/integers/integers.h"
#include "kernels/cuda/kernels/exact/exact.h"
#include "kernels/cuda/kernels/integers/product.h"
#include "kernels/cuda/kernels/product.h"
#include "kernels/cuda/kernels/rows.h"
#include "kernels/numerics/lanes.h"

enum { EXACT_STEP = 128 /* a multiple of the lanes of a group */ };

/** Set the vocabulary rows of a tile, and of all. */
static void cut_vocabulary(struct kern_cuda_walk *walk, const struct kern_head *heads,
                           size_t n_heads)
{
    size_t tile = KERN_CUDA_WALK_VOCAB;
    for (size_t h = 0; h < n_heads; h++) {
        const struct kern_weight *matrix = heads[h].matrix;
        if (!matrix)
            continue;
        walk->n_vocab = matrix->n_rows;
        tile = base_min(tile, kern_cuda_panel_rows(walk->cuda, matrix));
    }
    /* Whole score blocks, so that their sums are those of any other tile. */
    if (tile > KERN_SCORE_BLOCK)
        tile = tile / KERN_SCORE_BLOCK * KERN_SCORE_BLOCK;
    walk->tile_vocab = base_min(tile, walk->n_vocab);
}

struct kern_cuda_walk kern_cuda_walk_of(struct kern_cuda *cuda, size_t n_rows,
                                        const struct kern_head *heads, size_t n_heads)
{
    struct kern_cuda_walk walk = {.cuda = cuda};
    cut_vocabulary(&walk, heads, n_heads);
    walk.planned = KERN_CUDA_WALK_ROWS;
    walk.step = EXACT_STEP;
    /* Products of halves are planned for one number of rows, however few there are. */
    if (kern_cuda_uses_halves(cuda)) {
        walk.planned = base_min(walk.planned, cuda->options.product_tokens);
        walk.step = 0;
    }
    walk.max_rows = base_min(n_rows, walk.planned);
    return walk;
}

static bool in_integers(const struct kern_cuda_walk *walk, const struct kern_cuda_walk_head *head)
{
    return kern_cuda_uses_integers(walk->cuda, head->head->matrix->type);
}

static size_t padded(const struct kern_cuda_walk *walk, size_t n_rows)
{
    if (walk->step == 0)
        return walk->planned;
    return base_min(base_round_up(base_round_up(n_rows, KERN_LANES), walk->step), walk->planned);
}

size_t kern_cuda_walk_room(const struct kern_cuda_walk *walk)
{
    return padded(walk, walk->max_rows);
}

void kern_cuda_walk_divide(const struct kern_cuda_walk *walk, struct kern_cuda_walk_head *head,
                           size_t n_tiles, struct kern_cuda_arena *arena)
{
    const struct kern_weight *matrix = head->head->matrix;
    size_t n_cols = matrix->n_cols, room = kern_cuda_walk_room(walk);
    if (in_integers(walk, head)) {
        head->hidden_memory = kern_cuda_take(arena, kern_cuda_token_bytes(room, n_cols));
    } else if (kern_cuda_uses_halves(walk->cuda)) {
        head->hidden_memory =
            kern_cuda_take(arena, kern_cuda_operand_bytes(walk->cuda, room, n_cols));
        head->of_rows = kern_cuda_take_powers(arena, room);
        head->of_vocab = kern_cuda_take_powers(arena, walk->tile_vocab);
    }
    head->weights =
        kern_cuda_take(arena, kern_cuda_weight_bytes(walk->cuda, matrix, walk->tile_vocab));
    head->logits = kern_cuda_take(arena, n_tiles * walk->tile_vocab * room * sizeof(float));
}

/** The product of n vocabulary rows with the rows of a walk. */
static struct kern_cuda_product shape_of(const struct kern_cuda_walk *walk,
                                         const struct kern_cuda_walk_head *head, size_t n)
{
    return (struct kern_cuda_product){
        .side = KERN_CUDA_TOKENS_A,
        .n_weights = n,
        .n_k = head->head->matrix->n_cols,
        .n_tokens = walk->planned,
    };
}

enum status kern_cuda_walk_prepare(struct kern_cuda_walk *walk, struct kern_cuda_walk_head *head,
                                   struct status_why *why)
{
    struct kern_cuda_product shape = shape_of(walk, head, walk->tile_vocab);
    enum status status = kern_cuda_vector(walk->cuda, head->head->bias, &head->bias, why);
    if (in_integers(walk, head))
        shape.step = EXACT_STEP;
    else if (!status)
        status = kern_cuda_products_prepare(walk->cuda, &shape, walk->n_vocab, why);
    walk->step = base_max(walk->step, shape.step);
    return status;
}

enum status kern_cuda_walk_begin(struct kern_cuda_walk *walk, struct kern_cuda_walk_head *head,
                                 size_t first, size_t n_rows, struct status_why *why)
{
    size_t n_cols = head->head->matrix->n_cols;
    walk->n_rows = n_rows;
    walk->stride = padded(walk, n_rows);
    head->rows = head->head->hidden + first * n_cols;
    if (!kern_cuda_uses_halves(walk->cuda))
        return STATUS_OK;
    if (in_integers(walk, head)) {
        head->hidden = (struct kern_cuda_operand){.records = head->hidden_memory};
        return kern_cuda_pack(walk->cuda, head->head->matrix->type, head->rows, n_rows, n_cols,
                              head->hidden.records, why);
    }
    struct kern_cuda_split_tokens split = {
        .x = head->rows, .n_tokens = n_rows, .n_padded = walk->stride, .n_cols = n_cols};
    enum status status = kern_cuda_split(walk->cuda, &split, false, head->hidden_memory, why);
    head->hidden = split.operand;
    return status ? status
                  : kern_cuda_put_powers(walk->cuda, head->of_rows, walk->stride,
                                         head->hidden.largest, why);
}

/** Vocabulary rows row .. row + n - 1 of a head, and where their logits go. */
struct tile {
    size_t row, n;
    struct kern_cuda_operand weights;
    float *logits;
};

static enum status multiply_exact(const struct kern_cuda_walk *walk,
                                  const struct kern_cuda_walk_head *head, const struct tile *t,
                                  struct status_why *why)
{
    struct kern_exact_args args = {
        .a = head->rows,
        .b = t->weights.floats,
        .out = t->logits,
        .out_stride = walk->stride,
        .n_a = walk->n_rows,
        .n_b = t->n,
        .n_k = head->head->matrix->n_cols,
        .bias_b = head->bias ? head->bias + t->row : NULL,
        .scale = head->head->matrix->scale,
    };
    return kern_cuda_exact(walk->cuda, &args, why);
}

static enum status multiply_halves(const struct kern_cuda_walk *walk,
                                   struct kern_cuda_walk_head *head, const struct tile *t,
                                   struct status_why *why)
{
    const struct kern_cuda_product shape = shape_of(walk, head, t->n), *product;
    enum status status = kern_cuda_product_find(walk->cuda, &shape, &product, why);
    const struct kern_cuda_factors factors = {t->weights.halves, head->hidden.halves, walk->stride,
                                              t->logits, 0};
    if (!status)
        status = kern_cuda_multiply(walk->cuda, product, &factors, why);
    if (!status)
        status = kern_cuda_put_powers(walk->cuda, head->of_vocab, t->n, t->weights.largest, why);
    float cap = head->head->soft_cap;
    head->raw = (struct kern_raw_logits){
        .rows = head->of_rows,
        .vocab = head->of_vocab,
        .bias = head->bias ? head->bias + t->row : NULL,
        .scale = head->head->matrix->scale,
        .cap = cap > 0.0f ? cap : 0.0f,
        .inverse = 1.0f / cap,
    };
    return status;
}

static enum status multiply_integers(const struct kern_cuda_walk *walk,
                                     const struct kern_cuda_walk_head *head, const struct tile *t,
                                     struct status_why *why)
{
    const struct kern_weight *matrix = head->head->matrix;
    const struct kern_integers_args args = {
        .weights = t->weights.records,
        .tokens = head->hidden.records,
        .n_blocks = kern_record_blocks(matrix->n_cols),
        .out = t->logits,
        .row_step = walk->stride,
        .token_step = 1,
        .n_rows = t->n,
        .n_tokens = walk->n_rows,
        .bias = head->bias ? head->bias + t->row : NULL,
        .scale = matrix->scale,
    };
    return kern_cuda_multiply_integers(walk->cuda, matrix->type, &args, why);
}

/** The soft cap of a tile's logits, if the head has one. */
static enum status cap_logits(const struct kern_cuda_walk *walk,
                              const struct kern_cuda_walk_head *head, size_t n, float *logits,
                              struct status_why *why)
{
    float cap = head->head->soft_cap;
    if (!(cap > 0))
        return STATUS_OK;
    struct kern_cap_args args = {.x = logits,
                                 .width = walk->n_rows,
                                 .stride = walk->stride,
                                 .cap = cap,
                                 .inverse = 1.0f / cap};
    size_t n_blocks = n * base_div_up(walk->n_rows, KERN_ROWS_ELEMS);
    return kern_cuda_run(walk->cuda, KERN_CUDA_CAP, n_blocks, &args, why);
}

enum status kern_cuda_walk_multiply(const struct kern_cuda_walk *walk,
                                    struct kern_cuda_walk_head *head, size_t row, size_t n,
                                    float *logits, struct status_why *why)
{
    struct tile tile = {.row = row, .n = n, .logits = logits};
    enum status status = kern_cuda_operand_get(
        walk->cuda, (struct kern_cuda_weight_rows){head->head->matrix, row, n}, head->weights,
        &tile.weights, why);
    if (status)
        return status;
    if (!tile.weights.records && kern_cuda_uses_halves(walk->cuda))
        return multiply_halves(walk, head, &tile, why);
    status = tile.weights.records ? multiply_integers(walk, head, &tile, why)
                                  : multiply_exact(walk, head, &tile, why);
    return status ? status : cap_logits(walk, head, n, logits, why);
}

enum status kern_cuda_walk_finish(const struct kern_cuda_walk *walk,
                                  struct kern_cuda_walk_head *head, size_t n, float *logits,
                                  struct status_why *why)
{
    struct kern_finish_args args = {
        .sums = logits,
        .out = logits,
        .sums_stride = walk->stride,
        .out_stride = walk->stride,
        .n_a = walk->n_rows,
        .n_b = n,
        .a_largest = head->raw.rows.largest,
        .b_largest = head->raw.vocab.largest,
        .bias_b = head->raw.bias,
        .scale = head->raw.scale,
    };
    if (!head->raw.rows.first)
        return STATUS_OK;
    head->raw.rows = (struct kern_powers){0};
    enum status status = kern_cuda_finish(walk->cuda, &args, why);
    return status ? status : cap_logits(walk, head, n, logits, why);
}

struct kern_logits kern_cuda_walk_tile(const struct kern_cuda_walk *walk,
                                       struct kern_cuda_walk_head *head, size_t row, float *logits)
{
    struct kern_logits tile = {
        .logits = logits,
        .stride = walk->stride,
        .n_vocab = base_min(walk->n_vocab - row, walk->tile_vocab),
        .first_token = (int32_t)row,
        .raw = head->raw,
    };
    head->raw.rows = (struct kern_powers){0};
    return tile;
}
