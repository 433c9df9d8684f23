#include "kernels/cuda/product.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/context.h"
#include "kernels/cuda/k_product.h"

enum { SAMPLES = 16 /* rows of weights whose results are compared, where weights are slow */ };

size_t kern_cuda_product_padded(const struct kern_cuda_product *product, size_t n_tokens)
{
    return kern_cuda_min(kern_cuda_divide_up(n_tokens, product->step) * product->step,
                         product->n_tokens);
}

/** One product of halves of a shape. */
static enum status multiply_once(struct kern_cuda *cuda, const struct kern_cuda_product *product,
                                 const uint16_t *weights, const uint16_t *tokens, size_t n_tokens,
                                 float *c, bool accumulate, struct status_why *why)
{
    bool at_a = product->side == KERN_CUDA_TOKENS_A;
    struct kern_cuda_gemm gemm = {
        .a = at_a ? tokens : weights,
        .b = at_a ? weights : tokens,
        .c = c,
        .n_a = at_a ? n_tokens : product->n_weights,
        .n_b = at_a ? product->n_weights : n_tokens,
        .n_k = product->n_k,
        .plan_a = at_a ? product->n_tokens : product->n_weights,
        .plan_b = at_a ? product->n_weights : product->n_tokens,
        .accumulate = accumulate,
    };
    return cuda->device->ops->gemm(cuda->device, &gemm, why);
}

enum status kern_cuda_multiply(struct kern_cuda *cuda, const struct kern_cuda_product *product,
                               const struct kern_cuda_halves *weights,
                               const struct kern_cuda_halves *tokens, size_t n_tokens, float *c,
                               struct status_why *why)
{
    enum status status = kern_cuda_cancelled(cuda);
    bool split = weights->lo != NULL;
    if (status == STATUS_OK && split)
        status = multiply_once(cuda, product, weights->lo, tokens->hi, n_tokens, c, false, why);
    if (status == STATUS_OK && split)
        status = multiply_once(cuda, product, weights->hi, tokens->lo, n_tokens, c, true, why);
    if (status == STATUS_OK)
        status = multiply_once(cuda, product, weights->hi, tokens->hi, n_tokens, c, split, why);
    return status;
}

/** The trial of a shape: its operands and results. */
struct trial {
    const struct kern_cuda_product *product;
    size_t step;
    uint16_t *weights, *tokens;
    float *c;
    float *found, *expected; /* host: results of `step` tokens for some weights */
    size_t n_compared;       /* floats */
};

static enum status fill(struct kern_cuda *cuda, uint16_t *to, size_t n_rows, size_t n_k,
                        size_t period, struct status_why *why)
{
    struct kern_fill_args args = {
        .to = to, .n_elems = n_rows * n_k, .n_cols = n_k, .period = period, .seed = period};
    return kern_cuda_run(cuda, KERN_CUDA_FILL, kern_cuda_divide_up(args.n_elems, KERN_FILL_ELEMS),
                         0, &args, why);
}

/** The results of the tokens first .. first + step - 1 of a product of n_tokens. */
static enum status read_results(struct kern_cuda *cuda, const struct trial *t, size_t n_tokens,
                                size_t first, float *to, struct status_why *why)
{
    const struct kern_cuda_product *p = t->product;
    if (p->side == KERN_CUDA_TOKENS_B)
        return kern_cuda_get(cuda, to, t->c + first * p->n_weights, t->n_compared * sizeof(float),
                             why);
    enum status status = STATUS_OK;
    size_t n_samples = t->n_compared / t->step;
    for (size_t i = 0; status == STATUS_OK && i < n_samples; i++) {
        size_t row = i * (p->n_weights / n_samples);
        status = kern_cuda_get(cuda, to + i * t->step, t->c + row * n_tokens + first,
                               t->step * sizeof(float), why);
    }
    return status;
}

/** Whether equal tokens have equal results wherever they stand, and among fewer of them. */
static enum status compare(struct kern_cuda *cuda, const struct trial *t, bool *same_places,
                           bool *same_numbers, struct status_why *why)
{
    const struct kern_cuda_product *p = t->product;
    size_t n_bytes = t->n_compared * sizeof(float), last = p->n_tokens - t->step;
    last = last / t->step * t->step;
    *same_numbers = false;
    enum status status =
        multiply_once(cuda, p, t->weights, t->tokens, p->n_tokens, t->c, false, why);
    if (status == STATUS_OK)
        status = read_results(cuda, t, p->n_tokens, 0, t->expected, why);
    if (status == STATUS_OK)
        status = read_results(cuda, t, p->n_tokens, last, t->found, why);
    *same_places = status == STATUS_OK && memcmp(t->found, t->expected, n_bytes) == 0;
    if (status != STATUS_OK || !*same_places)
        return status;
    struct status_why why_not = {""};
    status = multiply_once(cuda, p, t->weights, t->tokens, t->step, t->c, false, &why_not);
    if (status == STATUS_UNSUPPORTED)
        return STATUS_OK;
    if (status != STATUS_OK)
        (void)status_fail(why, status, "%s", why_not.text);
    else
        status = read_results(cuda, t, t->step, 0, t->found, why);
    *same_numbers = status == STATUS_OK && memcmp(t->found, t->expected, n_bytes) == 0;
    return status;
}

/** Divide scratch memory and fill the operands. */
static enum status trial_open(struct kern_cuda *cuda, struct trial *t, struct status_why *why)
{
    const struct kern_cuda_product *p = t->product;
    struct kern_cuda_arena arena = {0};
    void *memory = NULL;
    for (int pass = 0; pass < 2; pass++) {
        arena.used = 0;
        t->weights = kern_cuda_take(&arena, p->n_weights * p->n_k * sizeof(uint16_t));
        t->tokens = kern_cuda_take(&arena, p->n_tokens * p->n_k * sizeof(uint16_t));
        t->c = kern_cuda_take(&arena, p->n_weights * p->n_tokens * sizeof(float));
        enum status status =
            pass == 0 ? kern_cuda_scratch(cuda, &memory, arena.used, why) : STATUS_OK;
        if (status != STATUS_OK)
            return status;
        arena.base = memory;
    }
    size_t n_weights =
        p->side == KERN_CUDA_TOKENS_B ? p->n_weights : kern_cuda_min(p->n_weights, SAMPLES);
    t->n_compared = n_weights * t->step;
    t->found = malloc(t->n_compared * sizeof(float));
    t->expected = malloc(t->n_compared * sizeof(float));
    if (!t->found || !t->expected)
        return status_fail(why, STATUS_MEMORY, "no memory to try a product");
    enum status status = fill(cuda, t->weights, p->n_weights, p->n_k, p->n_weights, why);
    return status == STATUS_OK ? fill(cuda, t->tokens, p->n_tokens, p->n_k, t->step, why) : status;
}

/** Find out to what multiples tokens must be padded. */
static enum status try_shape(struct kern_cuda *cuda, struct kern_cuda_product *product,
                             struct status_why *why)
{
    struct trial t = {.product = product,
                      .step = kern_cuda_min(cuda->options.product_step, product->n_tokens)};
    bool same_places = false, same_numbers = false;
    enum status status = trial_open(cuda, &t, why);
    if (status == STATUS_OK)
        status = compare(cuda, &t, &same_places, &same_numbers, why);
    free(t.found);
    free(t.expected);
    if (status == STATUS_OK && !same_places)
        return status_fail(why, STATUS_DEVICE,
                           "cuBLAS gives equal tokens different bits at different places in a "
                           "product of %zu x %zu; --precision exact does without cuBLAS",
                           product->n_weights, product->n_k);
    product->step = same_numbers ? t.step : product->n_tokens;
    return status;
}

enum status kern_cuda_product_find(struct kern_cuda *cuda, enum kern_cuda_side side,
                                   size_t n_weights, size_t n_k, size_t n_tokens,
                                   const struct kern_cuda_product **out, struct status_why *why)
{
    struct kern_cuda_products *products = &cuda->products;
    for (size_t i = 0; i < products->n_shapes; i++) {
        *out = &products->shapes[i];
        if ((*out)->side == side && (*out)->n_weights == n_weights && (*out)->n_k == n_k &&
            (*out)->n_tokens == n_tokens)
            return STATUS_OK;
    }
    *out = NULL;
    if (products->n_shapes == products->capacity) {
        size_t capacity = 2 * products->capacity + 16;
        struct kern_cuda_product *shapes = realloc(products->shapes, capacity * sizeof *shapes);
        if (!shapes)
            return status_fail(why, STATUS_MEMORY, "no memory for %zu shapes", capacity);
        products->shapes = shapes;
        products->capacity = capacity;
    }
    struct kern_cuda_product *product = &products->shapes[products->n_shapes];
    *product = (struct kern_cuda_product){
        .side = side, .n_weights = n_weights, .n_k = n_k, .n_tokens = n_tokens};
    enum status status = try_shape(cuda, product, why);
    if (status != STATUS_OK)
        return status;
    products->n_shapes++;
    *out = product;
    return STATUS_OK;
}
