/**
 * Places of the forward pass that a trace is shown: what a session calls back with, in the order of
 * the computation. Without a trace nothing of this is called.
 */
#ifndef MODEL_FORWARD_TRACE_H
#define MODEL_FORWARD_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The places: X(NAME). clients/trace/names.c has the names that people know them by. */
/* clang-format off */
#define MODEL_PLACES(X)                                                                            \
    X(EMBEDDING) X(NGRAMS) X(NGRAM_SHARES) X(NGRAM_SUMS)                                           \
    /* what mixes the tokens */                                                                    \
    X(ATTN_NORM) X(Q_LOW) X(Q_LOW_NORM) X(Q_PROJECTED) X(ATTN_GATE) X(K_PROJECTED) X(V_PROJECTED)  \
    X(Q_NORM) X(K_NORM) X(V_NORM) X(Q_ROTATED) X(K_ROTATED) X(Q_BARE_NORM) X(K_BARE_NORM)          \
    X(Q_TEMPERED) X(KV_LOW) X(KV_LOW_NORM) X(KV_UP) X(Q_WIDE) X(INDEX_K) X(INDEX_Q)                \
    X(INDEX_WEIGHTS) X(ATTENTION) X(GATED)                                                         \
    X(MIXER_IN) X(MIXER_GATE) X(CONVOLVED) X(K_CONVOLVED) X(V_CONVOLVED) X(BETA) X(ALPHA)          \
    X(RECURRED) X(MIXER_GATED)                                                                     \
    X(ATTN_OUT) X(PREDICTED) X(LOW_OUT) X(ATTN_RESIDUAL)                                           \
    /* feed-forward; the first three of each kind in one order */                                  \
    X(FFN_NORM) X(FFN_GATE) X(FFN_UP) X(FFN_ACT) X(FFN_OUT)                                        \
    X(EXPERT_NORM) X(ROUTER) X(EXPERTS) X(SHARES) X(NARROW)                                        \
    X(EXPERT_GATE) X(EXPERT_UP) X(EXPERT_ACT) X(EXPERT_OUT)                                        \
    X(SHARED_GATE) X(SHARED_UP) X(SHARED_ACT) X(SHARED_OUT)                                        \
    X(INPUT_GATE) X(INPUT_OUT)                                                                     \
    X(LAYER_OUT)                                                                                   \
    /* after the last layer; the caller computes and shows them */                                 \
    X(OUTPUT_NORM) X(LOGITS)
/* clang-format on */

struct kern_backend;

enum model_place {
#define MODEL_PLACE(name) MODEL_AT_##name,
    MODEL_PLACES(MODEL_PLACE)
#undef MODEL_PLACE
        MODEL_N_PLACES
};

/** What a node of an architecture's graph in llama.cpp stands for, where it is not as usual. */
struct model_node {
    enum model_place place;
    const char *name; /* without its layer; "": any; NULL ends a list */
    const char *op;   /* one of these words; NULL: any */
    bool other;       /* it stands for something else */
};
/** An architecture's, of which the first that fits counts; NULL: it has none, or is not known. */
const struct model_node *model_arch_nodes(const char *architecture);

/** What a place shows: rows of [n_heads, size], one for a token; or those of one expert. */
struct model_shown {
    enum model_place place;
    int layer;    /* -1: outside of all */
    size_t first; /* the batch's token of row 0 */
    size_t n_rows, n_heads, size;
    const float *data;    /* backend memory */
    const int32_t *ids;   /* host, instead of data: the experts */
    const float *shares;  /* host, instead of data: their shares */
    const uint32_t *rows; /* host: row i is that of token first + rows[i]; NULL: first + i */
    size_t expert;        /* whose, with `rows` */
};

/** The arrays are the session's, and valid during the call only. */
typedef void model_trace_fn(void *user, struct kern_backend *backend,
                            const struct model_shown *shown);

#endif
