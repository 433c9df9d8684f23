/** Weights as operands of products: decoded to floats or to scaled halves, a panel at a time. */
#ifndef KERNELS_CUDA_WEIGHTS_WEIGHTS_H
#define KERNELS_CUDA_WEIGHTS_WEIGHTS_H

#include "kernels/cuda/context.h"

/** Rows of a panel of the weight, when it is taken in panels from row 0 on. */
size_t kern_cuda_panel_rows(const struct kern_cuda *cuda, const struct kern_weight *weight);

/** The product of such a panel with a tile of tokens. */
struct kern_cuda_product kern_cuda_linear_shape(const struct kern_cuda *cuda,
                                                const struct kern_weight *weight);

/** Bytes of an operand of n_rows rows of floats or halves; of a weight, in its own form. */
size_t kern_cuda_operand_bytes(const struct kern_cuda *cuda, size_t n_rows, size_t n_cols);
size_t kern_cuda_weight_bytes(const struct kern_cuda *cuda, const struct kern_weight *weight,
                              size_t n_rows);

/** Rows row .. row + n_rows - 1 of a weight, which must fit a panel. */
struct kern_cuda_weight_rows {
    const struct kern_weight *weight;
    size_t row, n_rows;
};

/**
 * Decode them, to `memory` (kern_cuda_weight_bytes) or to where they are kept. The operand is valid
 * for what is queued next.
 */
enum status kern_cuda_operand_get(struct kern_cuda *cuda, struct kern_cuda_weight_rows rows,
                                  void *memory, struct kern_cuda_operand *out,
                                  struct status_why *why);

/**
 * Decode panels that were preloaded and stay packed on the device, in the order in which they were
 * found, as long as there is room to keep them. All of it is done when the call returns.
 */
enum status kern_cuda_operands_keep(struct kern_cuda *cuda, struct status_why *why);

struct kern_scale_args;

/** Multiply on the device (kernels/rows.h). */
enum status kern_cuda_scale(struct kern_cuda *cuda, const struct kern_scale_args *args,
                            struct status_why *why);

/**
 * A vector (bias, gain) in float32, times its scale, kept on the device; NULL stays NULL. Ask for
 * it before scratch memory: it may use that.
 */
enum status kern_cuda_vector(struct kern_cuda *cuda, const struct kern_weight *weight,
                             const float **out, struct status_why *why);

/** Bytes that kern_cuda_rows_decode() needs for n_rows rows. */
size_t kern_cuda_rows_bytes(const struct kern_weight *weight, size_t n_rows);

/** Single rows of a weight that need not be on the device. */
struct kern_cuda_single_rows {
    const struct kern_weight *weight;
    const int32_t *rows; /* host: each below weight->n_rows */
    size_t n_rows;
    void *packed;      /* device: kern_cuda_rows_bytes() */
    float *y;          /* device: [n_rows, n_cols] */
    uint32_t *largest; /* device: [n_rows], each row's largest magnitude; or NULL */
};

/** Upload the rows packed, and decode them. */
enum status kern_cuda_rows_decode(struct kern_cuda *cuda, const struct kern_cuda_single_rows *rows,
                                  struct status_why *why);

/**
 * Split the tokens into halves, to tokens->operand in memory of kern_cuda_operand_bytes().
 * from_waiting: they are results that wait (deferred.h).
 */
enum status kern_cuda_split(struct kern_cuda *cuda, struct kern_cuda_split_tokens *tokens,
                            bool from_waiting, void *memory, struct status_why *why);

#endif
