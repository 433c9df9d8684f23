/**
 * Products of halves by the library. A token's results never depend on its neighbours: a product
 * is planned for one number of tokens. Fewer tokens are padded, to a number that a trial on the
 * first use has found to give the same bits.
 */
#ifndef KERNELS_CUDA_PRODUCT_H
#define KERNELS_CUDA_PRODUCT_H

#include "kernels/cuda/device/device.h"
#include "kernels/cuda/kernels/gated/gated.h"

/** On which side the tokens are in c[j][i] = sum_k a[i][k] b[j][k]. */
enum kern_cuda_side { KERN_CUDA_TOKENS_A, KERN_CUDA_TOKENS_B };

/** A shape of products. */
struct kern_cuda_product {
    enum kern_cuda_side side;
    size_t n_weights;   /* rows of the weight */
    size_t n_k;         /* columns; in `high` a row of an operand has three times as many */
    size_t n_tokens;    /* planned */
    size_t step;        /* padding to multiples of this gives the bits of n_tokens */
    unsigned algorithm; /* of the library's */
};

struct kern_cuda_products {
    struct kern_cuda_product *shapes;
    size_t n_shapes, capacity;
};

/** Rows of a product, in the form of the precision: floats, halves or integers. */
struct kern_cuda_operand {
    float *floats;     /* exact: [n_rows, n_cols] */
    uint16_t *halves;  /* else: [n_rows][kern_cuda_depth()] */
    uint32_t *largest; /* of halves: [n_rows] */
    uint32_t *records; /* or records of integers (kernels/integers/records.h) */
    size_t n_bytes;    /* of all of them */
};

struct kern_cuda;
struct kern_cuda_arena;
struct kern_exact_args;
struct kern_finish_args;

/**
 * The product of a shape: its side, n_weights, n_k and n_tokens. On its first use the library is
 * tried in scratch memory (product_trial.c). The fastest algorithm is taken of those that give the
 * bits of its first one. Equal rows at different positions, and smaller numbers of tokens, must
 * give equal bits.
 * *out: valid until the next call.
 * Fails: STATUS_UNSUPPORTED (no algorithm for it), STATUS_DEVICE (the position changes the bits),
 *        STATUS_MEMORY.
 */
enum status kern_cuda_product_find(struct kern_cuda *cuda, const struct kern_cuda_product *shape,
                                   const struct kern_cuda_product **out, struct status_why *why);

/**
 * Find the products of a weight of n_rows rows that is taken shape->n_weights rows at a time: that
 * of so many rows, and that of the rows that are left. Raises shape->step to the larger of their
 * steps. Exact products need no preparation.
 */
enum status kern_cuda_products_prepare(struct kern_cuda *cuda, struct kern_cuda_product *shape,
                                       size_t n_rows, struct status_why *why);

/** That trial: sets algorithm and step. */
enum status kern_cuda_product_try(struct kern_cuda *cuda, struct kern_cuda_product *product,
                                  struct status_why *why);

/** Tokens to compute for n_tokens of them. */
size_t kern_cuda_product_padded(const struct kern_cuda_product *product, size_t n_tokens);

/** Halves in a row of n_cols columns: see struct kern_half_rows. */
size_t kern_cuda_depth(const struct kern_cuda *cuda, size_t n_cols);

/** c = weights times tokens, rows of kern_cuda_depth() halves. */
struct kern_cuda_factors {
    const uint16_t *weights, *tokens;
    size_t n_tokens; /* padded */
    float *c;        /* [n_tokens][n_weights] with tokens at b, else [n_weights][n_tokens] */
    size_t c_stride; /* from row to row of c; 0: they lie side by side */
};
enum status kern_cuda_multiply(struct kern_cuda *cuda, const struct kern_cuda_product *product,
                               const struct kern_cuda_factors *factors, struct status_why *why);

/** Launch the exact product, or what finishes the library's, of as many blocks as it takes. */
enum status kern_cuda_exact(struct kern_cuda *cuda, const struct kern_exact_args *args,
                            struct status_why *why);
enum status kern_cuda_finish(struct kern_cuda *cuda, const struct kern_finish_args *args,
                             struct status_why *why);

/** Room for the powers of n rows of an operand. */
struct kern_powers kern_cuda_take_powers(struct kern_cuda_arena *arena, size_t n);
/** The powers of n rows that were scaled by these magnitudes. */
enum status kern_cuda_put_powers(struct kern_cuda *cuda, struct kern_powers to, size_t n,
                                 const uint32_t *largest, struct status_why *why);

#endif
