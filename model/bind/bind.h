/**
 * Pointing a model's handles at tensors: by name, with the shape that the hyper-parameters ask
 * for. The model keeps the first failure: a sentence with the file, the tensor, the shape found and
 * the shape expected, mostly STATUS_FORMAT. What is called after it finds no tensor and does
 * nothing, so that binding is a list of calls; model_bind asks once, at the end. Binding again,
 * after a tensor has been replaced, writes the same handles again and allocates nothing.
 */
#ifndef MODEL_BIND_BIND_H
#define MODEL_BIND_BIND_H

#include "model/arch.h"

struct model_tensor;

/** Rows and columns of a matrix; a vector is one row. */
struct model_shape {
    size_t n_rows, n_cols;
    size_t n_matrices; /* 0: a plain matrix or vector; E: that many, stacked */
};

/** A shape as text, "[32, 64]": the dimension that is contiguous first, as GGUF has it. */
struct model_shape_text {
    char text[96];
};
const char *model_shape_text(struct model_shape_text *to, const uint64_t *ne, size_t n_dims);

/** Keep a failure (printf format): the sentence begins with the file. */
void model_bind_fail(struct model *m, enum status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/** Keep a failure of a tensor: the sentence begins with the file of its bytes, and its name. */
void model_tensor_fail(struct model *m, const struct model_tensor *tensor, enum status code,
                       const char *format, ...) __attribute__((format(printf, 4, 5)));

/**
 * Find a tensor and check its shape; mark it understood. usual: whether architectures have it that
 * do not say otherwise.
 * NULL where it is absent, which is a failure if this one always has it; and after a failure.
 */
struct model_tensor *model_bind_tensor(struct model *m, const char *name, struct model_shape shape,
                                       enum model_presence usual);

/** Bind a table of whole numbers, which is I32 and whose rows lie one after the other. */
struct model_tensor *model_bind_table(struct model *m, const char *name, struct model_shape shape);

/** Rows [first_row, first_row + n_rows) of a tensor as a weight of scale 1. */
struct kern_weight model_tensor_rows(const struct model_tensor *tensor, size_t first_row,
                                     size_t n_rows);

/** Columns [first, first + n) of a matrix; both are whole blocks of its type. */
struct kern_weight model_weight_columns(const struct kern_weight *weight, size_t first, size_t n);

/** Element i of a tensor that must be F32, and finite. */
float model_tensor_element(struct model *m, const struct model_tensor *tensor, size_t i);

/** Bit patterns that do not occur in a valid tensor of its type (NVFP4 has one): of all that is
 * read with the whole tensor; rows that tokens name model_tensor_check_rows() looks at. */
enum status model_tensor_check(const struct model_tensor *tensor, struct status_why *why);

/** A vector of any type; one that is absent: data = NULL. */
void model_bind_vector(struct model *m, struct kern_weight *out, const char *name, size_t n_cols,
                       enum model_presence usual);

/** "blk.<layer>.<name>" likewise. */
void model_bind_layer_vector(struct model *m, size_t layer, const char *name, size_t n_cols,
                             enum model_presence usual, struct kern_weight *out);

/** A matrix "blk.<layer>.<name>" of any type, or the rows of a stack of them. */
void model_bind_layer_matrix(struct model *m, size_t layer, const char *name,
                             struct model_shape shape, struct kern_weight *out);

/** A matrix of gains, a row for each group of a norm, as one row; absent: data = NULL. */
void model_bind_gains(struct model *m, size_t layer, const char *name, size_t n_groups,
                      size_t width, struct kern_weight *out);

/** The gain "blk.<layer>.<name>.weight" of n_cols columns; of a LayerNorm also its bias. "": none.
 */
void model_bind_norm(struct model *m, size_t layer, const char *name, size_t n_cols,
                     struct model_norm *out);

/** The one element of "blk.<layer>.<name>", F32 and finite. */
void model_bind_number(struct model *m, size_t layer, const char *name, float *value);

/** token_embd.weight, output_norm.weight and output.weight (absent: the embedding). */
void model_bind_ends(struct model *m);

/** Lists of RoPE's factors: rope_freqs.weight and those of longrope. */
void model_bind_rope_factors(struct model *m);

/** Parts of layer i: what mixes tokens, and the feed-forward with or without experts. */
void model_bind_attention(struct model *m, size_t i);
void model_bind_latent(struct model *m, size_t i);
/** With further keys that are made of runs of tokens. */
void model_bind_runs(struct model *m, size_t i);
void model_bind_indexer(struct model *m, size_t i);
void model_bind_delta_net(struct model *m, size_t i);
void model_bind_mamba2(struct model *m, size_t i);
void model_bind_kimi_delta_net(struct model *m, size_t i);
void model_bind_short_convolution(struct model *m, size_t i);
void model_bind_ffn(struct model *m, size_t i);

/**
 * The experts of each token's id, "blk.<layer>.<name>": rows of different numbers of experts, I32.
 */
void model_bind_experts_by_token(struct model *m, size_t layer, const char *name);

/** What mixes streams around the branches of a layer (hc_attn, hc_ffn), and after the last one. */
void model_streams_bind(struct model *m, size_t layer);
void model_streams_bind_end(struct model *m);

/** What block i, which predicts the token after the next, has beside a layer's tensors. */
void model_bind_nextn(struct model *m, size_t i);

/** Whether "blk.<layer>.<name>.weight" exists; MODEL_NO_LAYER: "<name>.weight". */
bool model_has_projection(const struct model *m, size_t layer, const char *name);

/** A stored product "blk.<layer>.<name>.weight"; MODEL_NO_LAYER: "<name>.weight". */
struct model_projection {
    size_t layer;
    const char *name;         /* "attn_q" */
    struct model_shape shape; /* of the whole tensor */
};

/** What one handle takes of it: all rows, some of them (fused projections), or one matrix. */
struct model_part {
    size_t matrix;            /* 0 unless the tensor is stacked */
    size_t first_row, n_rows; /* within the matrix; n_rows 0: all */
    bool unscaled;            /* what is called ".scale" is something else */
};

/**
 * Bind one part of a stored product, and what may stand beside it: ".bias" (one value per row and
 * matrix; absent: bias.data = NULL), ".scale" or ".weight.scale" (F32, one value per matrix,
 * multiplied onto the product), ".input_scale" (no effect). A product that is absent, as the
 * architecture allows: data = NULL.
 */
void model_bind_part(struct model *m, const struct model_projection *projection,
                     struct model_part part, struct model_product *out);

/** All of "blk.<layer>.<name>.weight", [n_rows, n_cols], and what may stand beside it. */
void model_bind_product(struct model *m, size_t layer, const char *name, size_t n_rows,
                        size_t n_cols, struct model_product *out);

/** Let a layer's tensors of this name be there without being used. */
void model_bind_unused(struct model *m, size_t layer, const char *name);

/** What a file has and no code of its architecture asked for. */
struct model_unknown {
    const char *what, *effect; /* "key", "has no effect" */
    bool allowed;              /* remarked on; else STATUS_FORMAT naming the first */
    size_t n;                  /* so far */
};
void model_unknown_add(struct model *m, struct model_unknown *unknown, struct base_string name);
/** After the last: how many have no remark of their own. */
void model_unknown_end(struct model *m, const struct model_unknown *unknown);

/** Tensors that no handle was pointed at. */
void model_bind_check_rest(struct model *m, bool allow_unknown);

/** What this architecture has, or else the usual, of a tensor: "blk.3.attn_q.bias". */
enum model_presence model_presence_of(const struct model *m, const char *name,
                                      enum model_presence usual);

/**
 * Tensors that are there in some layers only, or beside some matrices only: STATUS_FORMAT, naming
 * one that is missing.
 */
void model_bind_check_missing(struct model *m);

#endif
