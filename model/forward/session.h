/** A session: the scratch of one tile and the blocks of a layer that work in it. For model/ only.
 */
#ifndef MODEL_FORWARD_SESSION_H
#define MODEL_FORWARD_SESSION_H

#include "base/arithmetic.h"
#include "kernels/operations.h"
#include "kernels/recurrent.h"
#include "model/forward/forward.h"
#include "model/forward/runs/runs.h"
#include "model/forward/tile.h"
#include "model/state.h"

/**
 * Sizes of the scratch, in floats. T is the tokens of a tile; R the key rows that a tile may
 * need, B the tokens of a batch.
 */
struct model_scratch {
    size_t n_tokens;  /* T */
    size_t n_kv_rows; /* R */
    size_t h;         /* [T, D] */
    size_t k, v;      /* [R, the widest layer's] */
    size_t n_short;   /* positions with angles of short sequences before those of long ones, or 0 */
    size_t angles[MODEL_N_ROPES]; /* [positions, n_rot / 2, 2]: cos and sin */
    size_t back[MODEL_N_ROPES];   /* likewise, of the negative angles */
    size_t runs;                  /* what further keys are made of */
    size_t run_terms;             /* rows that they are made of, at most */
    size_t kept[MODEL_N_KEPT];    /* [B, k and v]: of layers whose keys later ones use */
    size_t zeros;                 /* [D], and constants of streams */
    size_t index_k;               /* [R, di], of pools three times, of means twice */
    size_t chosen;                /* rows of bits: of a tile, or of a batch for later layers */
    size_t wanted;                /* [T, S * D]: of the last layer */
    size_t convolve, recur;       /* saved states of recurrent layers */
    size_t ngrams;                /* likewise of the convolution after an embedding of n-grams */
    size_t streams;               /* of residuals with several */
    size_t work;                  /* of the block that needs the most */
};

/** The layers of a session with these options. */
struct model_layer_range model_session_layers(const struct model *model,
                                              const struct model_session_options *options);

/** What a session with these options needs. */
struct model_scratch model_scratch_of(const struct model *model,
                                      const struct model_session_options *options);

/** A part of the work area is taken at a time. base NULL: only counts what a block takes. */
struct model_cut {
    float *base;
    size_t n_floats;
};

/** The next part; each begins at a cache line. */
static inline float *model_take(struct model_cut *cut, size_t n_floats)
{
    enum { LINE_FLOATS = 16 };
    float *part = cut->base ? cut->base + cut->n_floats : NULL;
    cut->n_floats += base_round_up(n_floats, LINE_FLOATS);
    return part;
}

/**
 * Results of several experts in the order of the tile's rows, since a device adds each row in one
 * place. All NULL on the host, where experts add theirs one after the other.
 */
struct model_by_row {
    size_t *ends;   /* [T]: where the results for each row end */
    uint32_t *from; /* [T]: of which row of the experts' results */
    uint32_t *rows; /* [T]: to which of the tile */
    float *shares;  /* [T] */
};

struct model_session {
    struct status_kept failure; /* of the pass: after a failure its functions do nothing */
    const struct model *model;
    struct kern_backend *backend;
    struct model_session_options options;
    struct model_scratch scratch;
    /* Backend memory: */
    float *h, *k, *v, *zeros, *wanted, *work, *streams, *convolve_states, *recur_states,
        *ngram_states, *index_k, *chosen;
    float *angles[MODEL_N_ROPES], *back_angles[MODEL_N_ROPES], *kept[MODEL_N_KEPT], *run_rows;
    uint64_t factor_generations[MODEL_N_FACTORS]; /* of those in the angles; 0: not filled */
    /* Host memory: */
    int32_t *positions;                  /* [T] */
    int32_t *angle_rows;                 /* [T]: where the angles of the positions lie */
    struct kern_query_range *ranges;     /* [T] */
    struct kern_run *runs;               /* [T]; of models with recurrent layers */
    size_t n_runs;                       /* of the tile */
    struct kern_query_range *run_ranges; /* [T]: where further keys lie */
    int32_t *run_tokens;                 /* [T]: the places of tokens in their runs */
    int32_t *run_positions;              /* [T] of new further keys */
    uint32_t *run_terms;                 /* [T, run_terms]: the rows that these are made of */
    uint32_t *run_seen;                  /* [T]: further keys that could be seen */
    float *factors;                      /* [T] of rows */
    uint32_t *wanted_rows;               /* [T] of the tile */
    int32_t *ngram_rows;                 /* [T, rows of the table] */
    int32_t *experts;                    /* [T, experts used] */
    float *shares;                       /* [T, experts used] */
    uint32_t *expert_rows;               /* [T * experts used] rows of the tile, by expert */
    float *expert_shares;                /* likewise */
    size_t *expert_ends;                 /* [E]: where those of each expert end */
    struct model_by_row by_row;
    struct model_shown shown; /* of the tile, or of an expert: layer and rows */
    const uint8_t *marks;     /* of the tile's tokens; NULL: none */
};

/**
 * Run an operation of the pass, unless one has failed: its status, its sentence being
 * s->failure.why. So blocks are lists of operations, and only what the host makes of their results
 * looks at s->failure before.
 */
#define MODEL_TRY(s, call)                                                                         \
    ((s)->failure.status = (s)->failure.status ? (s)->failure.status : (call))

/** One tile of one layer. */
struct model_step {
    size_t i_layer;
    const struct model_layer *layer;
    const struct model_layer_shape *shape;
    const struct model_batch *batch;
    struct model_tile tile;
    size_t n_ranges;
    float *x;       /* [tile.n_tokens, S * D], the tile's rows of the residual stream */
    float *to;      /* what a branch is added to: x, or where streams are mixed [.., D] */
    bool keys_done; /* attention's keys and values of the tile are there */
};

/** Blocks: each adds its branch to x. What they take of the work area for tiles of n tokens. */
typedef void model_block_fn(struct model_session *s, const struct model_step *step);
typedef size_t model_block_floats_fn(const struct model *m, size_t i_layer, size_t n_tokens);

/** Work area, and rows of further keys; in sequences of up to most_positions. */
size_t model_runs_floats(const struct model *m, size_t i_layer, size_t n_tokens,
                         size_t most_positions);
size_t model_runs_row_floats(const struct model *m, size_t i_layer, size_t n_rows,
                             size_t most_positions);
model_block_fn model_block_runs;

/** Find the runs that end in the tile; a session keeps where they lie, and their tokens. */
struct model_new_runs model_runs_begin(struct model_session *s, const struct model_step *step,
                                       size_t run, bool overlap);
/** Keys of runs (struct kern_compress): of rows u, and of z, which are the gate's products + ape.
 */
struct model_run_keys {
    const struct model_compressor *compressor;
    float *u, *z; /* [R, width], twice as wide where runs overlap */
    float *keys;  /* of the runs that end in the tile */
    size_t n_keys, width, run;
    bool overlap;
};
/** The tile's rows of z, and the keys. in: [T, D]. */
void model_runs_compress(struct model_session *s, const struct model_step *step,
                         const struct model_run_keys *c, const float *in);

model_block_fn model_block_attention, model_block_latent, model_block_delta_net, model_block_mamba2,
    model_block_kimi_delta_net, model_block_short_convolution, model_block_attention_mamba2,
    model_block_matrix;
model_block_floats_fn model_attention_floats, model_latent_floats, model_recurrent_floats,
    model_kimi_delta_net_floats, model_short_convolution_floats, model_attention_mamba2_floats,
    model_matrix_floats;
/** Keys and values alone, which model_block_attention need not make again with keys_done. */
model_block_fn model_block_keys;
/** The choice of experts by the rows before attention, where an architecture makes it so. */
model_block_fn model_block_route;
/** The feed-forward: dense, with experts, or both side by side. */
model_block_fn model_block_ffn, model_block_moe, model_block_beside;
model_block_floats_fn model_ffn_floats, model_moe_floats;
/** What Gemma 4 has after these: a further input, and a scale of x. */
model_block_fn model_block_input;
model_block_floats_fn model_input_floats;

/** The shapes of a recurrent layer's operations; what they read and write is to be set. */
struct kern_convolve model_convolve_of(const struct model *m, size_t i_layer);
struct kern_recur model_recur_of(const struct model *m, size_t i_layer);

/**
 * The convolution of the tile's rows x, strides and weights being the layer's; sets s->runs.
 * which: 0; where q, k and v are apart, 0 to 2 are theirs.
 */
void model_convolve(struct model_session *s, const struct model_step *step, size_t which,
                    const float *x, float *y);

/** Show rows of [n_heads, size] that lie one after the other; the chosen experts and their shares.
 */
void model_show_always(struct model_session *s, enum model_place place, const float *data,
                       size_t n_heads, size_t size);
static inline void model_show(struct model_session *s, enum model_place place, const float *data,
                              size_t n_heads, size_t size)
{
    if (s->options.trace && !s->failure.status)
        model_show_always(s, place, data, n_heads, size);
}
void model_show_route(struct model_session *s, size_t n_used);

/** y = W x + b for n rows; y += with accumulate. same_x: as in struct kern_linear. */
void model_multiply(struct model_session *s, const struct model_product *product, const float *x,
                    size_t n_rows, float *y);
void model_multiply_same(struct model_session *s, const struct model_product *product,
                         const float *x, size_t n_rows, float *y);
void model_multiply_add(struct model_session *s, const struct model_product *product,
                        const float *x, size_t n_rows, float *y);

/** A product with more than that, as op says; its weight, bias and y_stride are the product's. */
void model_multiply_as(struct model_session *s, const struct model_product *product,
                       struct kern_linear op);

/** Compute a product whose rows are those that s->shown counts, and show their marks. */
void model_multiply_marked(struct model_session *s, struct kern_linear op);

/** y = norm of n rows of `width` (y += with accumulate); without gain the bare one; where the gain
 * is of several rows, each n-th of x has the n-th. */
struct model_norm_step {
    const struct model_norm *norm; /* NULL: bare */
    const float *x;
    float *y;
    size_t n_rows, width;
    bool accumulate;
};
void model_normalise(struct model_session *s, const struct model_norm_step *step);

/** x = norm of its rows, in place. */
void model_normalise_rows(struct model_session *s, const struct model_norm *norm, float *x,
                          size_t n_rows, size_t width);

/** *in = what a branch reads of x: s->h normalised, or x where there is no norm. */
void model_branch_input(struct model_session *s, const struct model_step *step,
                        const struct model_norm *norm, const float **in);
/** x += product(in), or where there is a norm after it, x += norm(product(in)); s->h is spoilt. */
void model_close_branch(struct model_session *s, const struct model_step *step,
                        const struct model_product *product, const struct model_norm *post,
                        const float *in);

/** The rows of model_hidden, as a part of a pass. */
void model_hide(struct model_session *s, const float *x, const uint32_t *rows, size_t n_rows,
                float *hidden);

/** Fails: STATUS_USAGE (an id beyond the vocabulary). */
enum status model_check_ids(const struct model_session *s, const int32_t *ids, size_t n,
                            struct status_why *why);
/** Cut rows apart or join them. y_stride 0: y's rows lie one after the other. */
void model_copy(struct model_session *s, struct kern_copy op);

/** Stream i of n rows of x to rows of their own, or back. */
void model_take_stream(struct model_session *s, const float *x, size_t i, size_t n, float *row);
void model_put_stream(struct model_session *s, const float *row, size_t i, size_t n, float *x);

/** Rotate the tile's rows x of n_heads heads each, from each head's first element on, if the layer
 * rotates at all. */
void model_rotate(struct model_session *s, const struct model_step *step, float *x, size_t n_heads,
                  size_t head_size);

/** Rotate heads from x on, which need not be their first element. */
struct model_turn {
    float *x;
    size_t n_rows, n_heads, head_size;
    const int32_t *positions; /* [n_rows] */
    bool halves;              /* pairs of halves, or of neighbours */
    bool back;                /* take a rotation back */
};
void model_turn(struct model_session *s, const struct model_step *step,
                const struct model_turn *turn);

/** Round heads of a layer's keys or values to what the model's types hold of them. */
void model_round_keys(struct model_session *s, size_t i_layer, float *k, size_t n_heads,
                      size_t size);
void model_round_values(struct model_session *s, size_t i_layer, float *v, size_t n_heads,
                        size_t size);
/** Let attention know what the keys of that layer were rounded to. */
void model_name_keys(const struct model_session *s, size_t kv_layer, struct kern_attention *op);
/** Round n rows that are never turned: compressed ones, and an indexer's keys. */
void model_round_rows(struct model_session *s, struct model_kv_type type, float *k, size_t n,
                      size_t width);

/** For each head i, columns of y = matrix i of a stack times columns of x. */
struct model_per_head {
    const struct kern_weight *stack;
    size_t step; /* bytes from matrix to matrix; 0: they lie one after the other */
    const float *x;
    size_t x_head, x_stride; /* floats from head to head, from row to row */
    float *y;
    size_t y_head, y_stride;
};
/** head: scratch, [n_tokens, columns of the stack]. */
void model_multiply_heads(struct model_session *s, size_t n_tokens, size_t n_heads,
                          const struct model_per_head *op, float *head);

/** Gates of attention's result; all NULL: there are none. */
struct model_gate {
    float *gate;    /* [T, H dv] */
    float *by_head; /* [T, H], or NULL: a gate is of an element */
};
struct model_gate model_gate_take(struct model_cut *cut, const struct model *m, size_t i_layer,
                                  size_t n_tokens);
/** Their product, of the x and tokens of op. */
void model_gate_project(struct model_session *s, const struct model_step *step,
                        const struct model_gate *gate, struct kern_linear op);
void model_gate_show(struct model_session *s, const struct model_step *step,
                     const struct model_gate *gate);
/** What they make of out [T, H dv], which lies in their place; out itself where there are none. */
float *model_gate_apply(struct model_session *s, const struct model_step *step,
                        const struct model_gate *gate, float *out);

/** Let the tile's queries grow with their positions, in layers that have it. */
void model_temper(struct model_session *s, const struct model_step *step, float *q, size_t width);

/**
 * y = activation(Wgate x) * (Wup x), or without a gate activation(Wup x), of the n_rows that
 * s->shown counts; `up` is scratch.   place: of the gate; that of Wup x and of y follow it.
 */
struct model_ffn_step {
    const struct model_ffn *ffn;
    const struct model_activation *activation;
    enum model_place place;
    const float *x;
    size_t n_rows;
    float *y, *up;
    const struct model_layer_shape *sparse; /* whose gates have a threshold; NULL: none */
};
void model_ffn_inner(struct model_session *s, const struct model_ffn_step *step);

/** NULL where there is none. */
static inline const struct kern_weight *model_present(const struct kern_weight *weight)
{
    return weight->data ? weight : NULL;
}

#endif
