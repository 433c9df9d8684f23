/**
 * The forward pass: a model on a backend, layer by layer over a large batch.
 *
 * The caller owns the residual stream x [T, S * D] (backend memory): S rows of D for a token, most
 * often one (model_residual_width()). Inside a layer the work goes in token tiles, so that only x
 * grows with the batch. No result depends on the tile.
 */
#ifndef MODEL_FORWARD_FORWARD_H
#define MODEL_FORWARD_FORWARD_H

#include "model/forward/batch.h"
#include "model/forward/trace.h"
#include "model/model.h"
#include "model/split.h"

/** Called after each token tile of each layer; done and total count tile * layer steps. */
typedef void model_progress_fn(void *user, size_t done, size_t total);

/**
 * Tokens of a tile, where neither the caller nor the backend says otherwise. A weight is decoded
 * once per tile. Two cores, width 2048, Q4_K: tiles of 512 to 4096 are as fast.
 */
enum { MODEL_TILE_TOKENS = 1024 };

struct model_session_options {
    size_t tile_tokens; /* tokens per tile; 0: MODEL_TILE_TOKENS */
    size_t max_batch;   /* largest n_tokens of a batch */
    size_t max_segment; /* longest segment plus its parent: also the number of positions */
    struct model_layer_range layers; /* the only ones that it computes; to 0: all */
    model_progress_fn *progress;     /* may be NULL */
    void *progress_user;
    model_trace_fn *trace; /* may be NULL; after a failure nothing is shown */
    void *trace_user;
};

/** A model bound to a backend, with the scratch memory of a tile. */
struct model_session;

/**
 * Allocate the scratch; model and backend must outlive the session.
 * Fails: STATUS_MEMORY, STATUS_DEVICE, STATUS_USAGE (sizes of nothing; types of a cache whose
 *        scales nobody has calibrated).
 */
enum status model_session_open(struct model_session **out, const struct model *model,
                               struct kern_backend *backend,
                               const struct model_session_options *options, struct status_why *why);
void model_session_close(struct model_session *s);

/** Bytes of backend memory that a session with these options will allocate. */
size_t model_session_bytes(const struct model *model, const struct model_session_options *options);

/** Floats of a key row and of a value row of a layer. */
struct model_kv_widths {
    size_t k, v;
};
struct model_kv_widths model_kv_widths(const struct model_hparams *h, size_t i_layer);

/** What a layer's keys and values are rounded to by h->kv, and its indexer's keys. */
struct model_kv_type model_key_type(const struct model_hparams *h, size_t i_layer);
struct model_kv_type model_value_type(const struct model_hparams *h, size_t i_layer);
struct model_kv_type model_index_type(const struct model_hparams *h, size_t i_layer);

/**
 * Bytes of a key/value cache in which a program keeps a sequence of n_positions tokens. Layers that
 * see a window keep that many, layers that use others' keys none; of latent attention the
 * compressed rows count where the file lets queries meet them. An indexer's keys count as keys,
 * of a type of their own where types have one.
 * Layers with a state have that in float32. types: as model_round_kv has them, F32 being 4 bytes. A
 * program may round up.
 */
double model_cache_bytes(const struct model_hparams *h, const struct model_kv_types *types,
                         size_t n_positions);

/**
 * What makes up such a cache: numbers for keys and values of a token in all layers
 * that keep every position, those in the layers that keep a window, and bytes of states.
 */
struct model_cache_shape {
    size_t k, v;
    size_t window, window_k, window_v; /* positions, of several windows the largest; 0: none */
    double state_bytes;
    double bytes, window_bytes; /* of those numbers, by h->kv */
};
struct model_cache_shape model_cache_shape(const struct model_hparams *h);

/** The most working memory that the backend takes for an operation of a session's passes. */
size_t model_operation_bytes(const struct model *model, struct kern_backend *backend,
                             const struct model_session_options *options);

/** x[t] = what enters the first layer of token t: its embedding. Fails: STATUS_USAGE (an id beyond
 * the vocabulary). */
enum status model_embed(struct model_session *s, const struct model_batch *batch, float *x,
                        struct status_why *why);
/**
 * Advance x [n_tokens, S * D] through layers [layer_from, layer_to). After the last layer rows of
 * unwanted tokens may be what they were before it.
 * Fails: STATUS_USAGE (a batch that model_batch_check refuses, or larger than the session was
 *        made for; a layer that is not there, or not the session's; a parent of sequences on both
 * sides of model_rope_boundary), STATUS_CANCELLED (x is then half-way), and what the backend's
 * operations fail with.
 */
enum status model_forward(struct model_session *s, const struct model_batch *batch,
                          size_t layer_from, size_t layer_to, float *x, struct status_why *why);
/**
 * x of the block that predicts the token after the next, for pairs of a token and the row before
 * it: x[i] = join [token_norm(embedding of token i), hidden_norm(row i)]. Row i is what
 * model_hidden makes of row before[i] of the layers' stream, or with nextn_stream that row itself.
 *
 * The block is layer n_layers, which a session of that layer alone advances x through.
 * pairs: their tokens; their marks are those of the products. before: host. stream: what left the
 * last layer; x: [n_tokens, D]; backend memory, apart. The model was opened with the block.
 * Fails: STATUS_USAGE (an id beyond the vocabulary), STATUS_MEMORY, STATUS_DEVICE.
 */
enum status model_nextn_enter(struct model_session *s, const struct model_batch *pairs,
                              const uint32_t *before, const float *stream, float *x,
                              struct status_why *why);
/** Bytes of backend memory that this takes, of n pairs. */
size_t model_nextn_bytes(const struct model *m, size_t n);
/** What model_nextn_head takes of x after the block: hidden[i] = norm(x[i]). Backend memory. */
enum status model_nextn_hidden(struct model_session *s, const float *x, size_t n, float *hidden,
                               struct status_why *why);
/**
 * hidden[i] = outputnorm(x[rows[i]]), where the model has one: what kern_score takes. rows: host.
 * hidden: backend memory [n_rows, D].
 */
enum status model_hidden(struct model_session *s, const float *x, const uint32_t *rows,
                         size_t n_rows, float *hidden, struct status_why *why);

#endif
