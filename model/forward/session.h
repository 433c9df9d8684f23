/** A session: the scratch of one tile and the blocks of a layer that work in it. For model/ only.
 */
#ifndef MODEL_FORWARD_SESSION_H
#define MODEL_FORWARD_SESSION_H

#include "model/forward/forward.h"
#include "model/forward/tile.h"
#include "model/state.h"

/**
 * Sizes of the scratch, in floats. T is the tokens of a tile; R the key rows that a tile may
 * need; H, G and F the largest of any layer.
 */
struct model_scratch {
    size_t n_tokens;  /* T */
    size_t n_kv_rows; /* R */
    size_t h;         /* [T, D] */
    size_t k, v;      /* [R, G * d] each */
    size_t angles;    /* [positions, n_rot / 2, 2]: cos and sin */
    /**
     * Attention's q and out, [T, H * d] each; once they are done with, the feed-forward's gate
     * and up, [T, F] each, and with experts the router's logits [T, E], the gathered rows and
     * their results [T, D].
     */
    size_t work;
};

/** What a session with these options needs. */
struct model_scratch model_scratch_of(const struct model *model,
                                      const struct model_session_options *options);

/** Room for a part of the work area, so that the next one begins at a cache line. */
size_t model_work_floats(size_t n_floats);

struct model_session {
    const struct model *model;
    struct kern_backend *backend;
    struct model_session_options options;
    struct model_scratch scratch;
    float *h, *k, *v, *angles, *work; /* backend memory */
    uint64_t rope_generation;         /* of the factors in the angles; 0: not filled */
    /* Host memory: */
    int32_t *positions;              /* [T] */
    struct kern_query_range *ranges; /* [T] */
    int32_t *experts;                /* [T, experts used] */
    float *shares;                   /* [T, experts used] */
    uint32_t *expert_rows;           /* [T] rows of the tile that one expert serves */
    float *expert_shares;            /* [T] */
};

/** One tile of one layer. */
struct model_step {
    size_t i_layer;
    const struct model_layer *layer;
    struct model_tile tile;
    size_t n_ranges;
    float *x; /* [tile.n_tokens, D], the tile's rows of the residual stream */
};

/** y = rmsnorm(x) * gain for n rows. */
enum status model_norm(struct model_session *s, const struct kern_weight *gain, const float *x,
                       size_t n_rows, float *y, struct status_why *why);
/** x += Wo attention(rope(Wq h), rope(Wk h), Wv h), h = rmsnorm(x). */
enum status model_block_attention(struct model_session *s, const struct model_step *step,
                                  struct status_why *why);
/** x += Wdown(silu(Wgate h) * (Wup h)), h = rmsnorm(x). */
enum status model_block_ffn(struct model_session *s, const struct model_step *step,
                            struct status_why *why);
/** The same with experts: each token's few, weighted by the router's shares. */
enum status model_block_moe(struct model_session *s, const struct model_step *step,
                            struct status_why *why);

/** y = silu(Wgate x) * (Wup x) for n rows of x; gate is y, up is scratch. */
enum status model_ffn_inner(struct model_session *s, const struct model_ffn *ffn, const float *x,
                            size_t n_rows, float *gate, float *up, struct status_why *why);

/** NULL for an absent bias. */
static inline const struct kern_weight *model_bias(const struct kern_weight *bias)
{
    return bias->data ? bias : NULL;
}

#endif
