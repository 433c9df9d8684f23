/**
 * Pointing a model's handles at tensors: by name, with the shape that the hyper-parameters ask
 * for. What an architecture's bind function calls. All failures are STATUS_FORMAT: a sentence
 * with the file, the tensor, the shape found and the shape expected.
 */
#ifndef MODEL_ARCH_BIND_H
#define MODEL_ARCH_BIND_H

#include "gguf/file.h"
#include "kernels/backend.h"
#include "model/model.h"

struct model_tensor;

/** Rows and columns of a matrix; a vector is one row. */
struct model_shape {
    size_t n_rows, n_cols;
    size_t n_matrices; /* 0: a plain matrix or vector; E: that many, stacked */
};

/**
 * Find a tensor and check its shape; mark it understood.
 * *out = NULL where it is absent, which is a failure unless `optional`.
 */
enum status model_bind_tensor(struct model *m, struct model_tensor **out, const char *name,
                              struct model_shape shape, bool optional, struct status_why *why);

/** Rows [first_row, first_row + n_rows) of a tensor as a weight of scale 1. */
struct kern_weight model_tensor_rows(const struct model_tensor *tensor, size_t first_row,
                                     size_t n_rows);

/** Bit patterns that do not occur in a valid tensor of its type (NVFP4 has one). */
enum status model_tensor_check(const struct model *m, const struct model_tensor *tensor,
                               struct status_why *why);

/** A vector of any type. */
enum status model_bind_vector(struct model *m, struct kern_weight *out, const char *name,
                              size_t n_cols, struct status_why *why);

/** "blk.<layer>.<name>.weight" of n_embd columns. */
enum status model_bind_norm(struct model *m, size_t layer, const char *name,
                            struct kern_weight *out, struct status_why *why);

/** token_embd.weight, output_norm.weight and output.weight (absent: the embedding). */
enum status model_bind_ends(struct model *m, struct status_why *why);

/** rope_freqs.weight where there is one, and the frequencies that follow. */
enum status model_bind_rope_factors(struct model *m, struct status_why *why);

/** Whether "blk.<layer>.<name>.weight" exists. */
bool model_has_projection(const struct model *m, size_t layer, const char *name);

/** A stored product "blk.<layer>.<name>.weight". */
struct model_projection {
    size_t layer;
    const char *name;         /* "attn_q" */
    struct model_shape shape; /* of the whole tensor */
};

/** What one handle takes of it: all rows, some of them (fused projections), or one matrix. */
struct model_part {
    size_t matrix;            /* 0 unless the tensor is stacked */
    size_t first_row, n_rows; /* within the matrix */
    struct kern_weight *weight;
    struct kern_weight *bias; /* NULL: this architecture has none here */
};

/**
 * Bind one part of a stored product, and what may stand beside it: ".bias" (one value per row,
 * not for stacked ones; absent: bias->data = NULL), ".scale" (F32, one value per matrix,
 * multiplied onto the product), ".input_scale" (no effect).
 */
enum status model_bind_part(struct model *m, const struct model_projection *projection,
                            const struct model_part *part, struct status_why *why);

/**
 * Tensors that no handle was pointed at: STATUS_FORMAT naming the first, or remarks if
 * allow_unknown.
 */
enum status model_bind_check_rest(struct model *m, bool allow_unknown, struct status_why *why);

#endif
