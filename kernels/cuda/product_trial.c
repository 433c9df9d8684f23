/*
 * The trial of a shape of products on its first use. It finds the fastest of the library's
 * algorithms, and the multiple that tokens are padded to. Neither may change a bit of a result.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/context.h"
#include "kernels/cuda/kernels/product.h"

enum {
    SAMPLES = 16, /* rows of weights whose results are compared, where weights are slow */
    RUNS = 3      /* that an algorithm is timed for */
};

/** The trial of a shape: its operands and results. */
struct trial {
    const struct kern_cuda_product *product;
    size_t step;
    uint16_t *weights, *tokens;
    float *c;
    uint32_t *digest;        /* [2] */
    float *found, *expected; /* host: results of `step` tokens for some weights */
    size_t n_compared;       /* floats */
};

static enum status fill(struct kern_cuda *cuda, uint16_t *to, size_t n_rows, size_t n_k,
                        size_t period, struct status_why *why)
{
    struct kern_fill_args args = {
        .to = to, .n_elems = n_rows * n_k, .n_cols = n_k, .period = period, .seed = period};
    return kern_cuda_run(cuda, KERN_CUDA_FILL, base_div_up(args.n_elems, KERN_FILL_ELEMS), &args,
                         why);
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
    for (size_t i = 0; !status && i < n_samples; i++) {
        size_t row = i * (p->n_weights / n_samples);
        status = kern_cuda_get(cuda, to + i * t->step, t->c + row * n_tokens + first,
                               t->step * sizeof(float), why);
    }
    return status;
}

static enum status multiply(struct kern_cuda *cuda, const struct trial *t, size_t n_tokens,
                            struct status_why *why)
{
    const struct kern_cuda_factors factors = {t->weights, t->tokens, n_tokens, t->c, 0};
    return kern_cuda_multiply(cuda, t->product, &factors, why);
}

/** Whether the first and the last of fewer tokens have the expected results. */
static enum status compare_fewer(struct kern_cuda *cuda, const struct trial *t, size_t n_tokens,
                                 bool *same, struct status_why *why)
{
    const size_t positions[] = {0, n_tokens - t->step};
    struct status_why why_not = {""};
    enum status status = multiply(cuda, t, n_tokens, &why_not);
    *same = !status;
    if (status == STATUS_UNSUPPORTED)
        return STATUS_OK;
    if (status)
        return status_fail(why, status, "%s", why_not.text);
    for (size_t i = 0; i < 2 && *same; i++) {
        status = read_results(cuda, t, n_tokens, positions[i], t->found, why);
        *same = !status && memcmp(t->found, t->expected, t->n_compared * sizeof(float)) == 0;
    }
    return status;
}

/** Whether equal tokens have equal results at every position, and among fewer of them. */
static enum status compare(struct kern_cuda *cuda, const struct trial *t, bool *same_positions,
                           bool *same_numbers, struct status_why *why)
{
    const struct kern_cuda_product *p = t->product;
    size_t n_bytes = t->n_compared * sizeof(float), last = p->n_tokens - t->step;
    last = last / t->step * t->step;
    /* The fewest, and a number that fills the device in another way than all of them do. */
    const size_t fewer[] = {t->step, (p->n_tokens / t->step / 2 + 1) * t->step};
    enum status status = multiply(cuda, t, p->n_tokens, why);
    if (!status)
        status = read_results(cuda, t, p->n_tokens, 0, t->expected, why);
    if (!status)
        status = read_results(cuda, t, p->n_tokens, last, t->found, why);
    *same_positions = !status && memcmp(t->found, t->expected, n_bytes) == 0;
    *same_numbers = *same_positions;
    for (size_t i = 0; i < 2 && *same_numbers; i++)
        status = compare_fewer(cuda, t, fewer[i], same_numbers, why);
    return status;
}

static size_t divide(const struct kern_cuda *cuda, struct trial *t, void *memory)
{
    const struct kern_cuda_product *p = t->product;
    struct kern_cuda_arena arena = {.base = memory};
    size_t row_bytes = kern_cuda_depth(cuda, p->n_k) * sizeof(uint16_t);
    t->weights = kern_cuda_take(&arena, p->n_weights * row_bytes);
    t->tokens = kern_cuda_take(&arena, p->n_tokens * row_bytes);
    t->c = kern_cuda_take(&arena, p->n_weights * p->n_tokens * sizeof(float));
    t->digest = kern_cuda_take(&arena, 2 * sizeof *t->digest);
    return arena.used;
}

/** Divide scratch memory and fill the operands. */
static enum status trial_open(struct kern_cuda *cuda, struct trial *t, struct status_why *why)
{
    const struct kern_cuda_product *p = t->product;
    void *memory = NULL;
    enum status status = kern_cuda_scratch(cuda, &memory, divide(cuda, t, NULL), why);
    if (status)
        return status;
    (void)divide(cuda, t, memory);
    size_t n_weights =
        p->side == KERN_CUDA_TOKENS_B ? p->n_weights : base_min(p->n_weights, SAMPLES);
    t->n_compared = n_weights * t->step;
    t->found = malloc(t->n_compared * sizeof(float));
    t->expected = malloc(t->n_compared * sizeof(float));
    if (!t->found || !t->expected)
        return status_fail(why, STATUS_MEMORY, "no memory to try a product");
    size_t depth = kern_cuda_depth(cuda, p->n_k);
    status = fill(cuda, t->weights, p->n_weights, depth, p->n_weights, why);
    return status ? status : fill(cuda, t->tokens, p->n_tokens, depth, t->step, why);
}

/**
 * Seconds of a product of all tokens by its algorithm, the least of some, and its digest. One that
 * takes more than twice `limit` is timed once.
 */
static enum status run_algorithm(struct kern_cuda *cuda, const struct trial *t, double limit,
                                 double *seconds, uint32_t digest[2], struct status_why *why)
{
    const struct kern_cuda_device_ops *ops = cuda->device->ops;
    const struct kern_cuda_product *product = t->product;
    struct kern_digest_args args = {
        .x = t->c, .n = product->n_weights * product->n_tokens, .digest = t->digest};
    enum status status = STATUS_OK;
    *seconds = 1e9;
    /* The first warms up. */
    for (int run = 0; !status && run <= RUNS && (run < 2 || *seconds <= 2.0 * limit); run++) {
        double now = 0.0;
        status = ops->mark(cuda->device, KERN_CUDA_MARK_TRIAL, why);
        if (!status)
            status = multiply(cuda, t, product->n_tokens, why);
        if (!status)
            status = ops->mark(cuda->device, KERN_CUDA_MARK_TRIAL + 1, why);
        if (!status && run > 0)
            status = ops->elapsed(cuda->device, KERN_CUDA_MARK_TRIAL, KERN_CUDA_MARK_TRIAL + 1,
                                  &now, why);
        *seconds = run > 0 && now < *seconds ? now : *seconds;
    }
    if (!status)
        status = ops->clear(cuda->device, t->digest, 0, 2 * sizeof *t->digest, why);
    if (!status)
        status =
            kern_cuda_run(cuda, KERN_CUDA_DIGEST, base_div_up(args.n, KERN_FILL_ELEMS), &args, why);
    return status ? status : kern_cuda_get(cuda, digest, t->digest, 2 * sizeof *digest, why);
}

/**
 * The fastest algorithm of those that give every result the bits of the first one that works. So
 * the bits are that one's, whatever the times are. One that does not work is passed over; that
 * none does is an error.
 */
static enum status choose_algorithm(struct kern_cuda *cuda, const struct trial *t,
                                    struct kern_cuda_product *product, struct status_why *why)
{
    double least = 1e9;
    uint32_t expected[2] = {0, 0};
    unsigned best = KERN_CUDA_MAX_ALGORITHMS;
    struct status_why first_why = {""};
    for (product->algorithm = 0; product->algorithm < KERN_CUDA_MAX_ALGORITHMS;
         product->algorithm++) {
        struct status_why why_not = {""};
        double seconds = 0.0;
        uint32_t found[2] = {0, 0};
        enum status status = run_algorithm(cuda, t, least, &seconds, found, &why_not);
        if (status && status != STATUS_UNSUPPORTED)
            return status_fail(why, status, "%s", why_not.text);
        bool is_first = best == KERN_CUDA_MAX_ALGORITHMS;
        if (status && product->algorithm == 0)
            first_why = why_not;
        if (!status && is_first)
            memcpy(expected, found, sizeof expected);
        if (status || memcmp(found, expected, sizeof found) != 0 || (!is_first && seconds >= least))
            continue;
        least = seconds;
        best = product->algorithm;
    }
    if (best == KERN_CUDA_MAX_ALGORITHMS)
        return status_fail(why, STATUS_UNSUPPORTED, "%s", first_why.text);
    product->algorithm = best;
    return STATUS_OK;
}

enum status kern_cuda_product_try(struct kern_cuda *cuda, struct kern_cuda_product *product,
                                  struct status_why *why)
{
    struct trial t = {.product = product,
                      .step = base_min(cuda->options.product_step, product->n_tokens)};
    bool same_positions = false, same_numbers = false;
    enum status status = trial_open(cuda, &t, why);
    if (!status)
        status = choose_algorithm(cuda, &t, product, why);
    if (!status)
        status = compare(cuda, &t, &same_positions, &same_numbers, why);
    free(t.found);
    free(t.expected);
    if (!status && !same_positions)
        return status_fail(why, STATUS_DEVICE,
                           "cuBLAS gives equal tokens different bits at different positions in a "
                           "product of %zu x %zu; --precision exact does without cuBLAS",
                           product->n_weights, product->n_k);
    product->step = same_numbers ? t.step : product->n_tokens;
    return status;
}
