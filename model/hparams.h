/**
 * The hyper-parameters of a model: what its keys and its architecture say, checked. Letters as in
 * kernels/types.h. docs/forward.md says what each of them does.
 */
#ifndef MODEL_HPARAMS_H
#define MODEL_HPARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/recurrent_types.h"
#include "kernels/types.h"

enum model_rope_scaling {
    MODEL_ROPE_NONE,
    MODEL_ROPE_LINEAR,
    MODEL_ROPE_YARN,
    MODEL_ROPE_LONG /* one of two lists of factors, by the length of a sequence */
};

/** One way of rotating queries and keys. */
struct model_rope {
    uint32_t n_rot; /* elements of a head that are rotated; even */
    float freq_base;
    enum model_rope_scaling scaling;
    float factor; /* > 1 stretches; 1: none */
    uint32_t original_ctx;
    double magnitude;      /* cos and sin are multiplied by it */
    float yarn_ext_factor; /* how much of YaRN's mix is applied: 1 for yarn, else 0 */
    float yarn_beta_fast, yarn_beta_slow;
    bool yarn_unrounded;  /* the range of pairs that are mixed keeps its fractions */
    bool has_factors;     /* the model's rope_freqs.weight belongs to it */
    uint32_t n_factors;   /* elements of such lists, of which the first n_rot / 2 count */
    uint32_t sections[3]; /* pairs by axis of a picture, as llama.cpp takes them; all 0: none */
};

/** Which of them a layer uses. */
enum model_rope_use { MODEL_ROPE_FULL, MODEL_ROPE_SLIDING, MODEL_N_ROPES, MODEL_ROPE_OFF = -1 };

/** What mixes the tokens of a sequence. */
enum model_mixer {
    MODEL_ATTENTION,
    MODEL_LATENT_ATTENTION,
    MODEL_RUN_ATTENTION, /* with further keys, each of a run of tokens */
    MODEL_DELTA_NET,
    MODEL_MAMBA2,
    MODEL_SHORT_CONVOLUTION,
    MODEL_KIMI_DELTA_NET,   /* each channel of a state decays in its own way */
    MODEL_ATTENTION_MAMBA2, /* both, of the same normalised rows; their sum is added */
    MODEL_MATRIX,           /* none: a matrix of the normalised rows in attention's place */
    MODEL_NO_MIXER
};

/** Whether it keeps something of a sequence that every token changes. */
static inline bool model_mixer_has_state(enum model_mixer mixer)
{
    return mixer == MODEL_DELTA_NET || mixer == MODEL_MAMBA2 || mixer == MODEL_SHORT_CONVOLUTION ||
           mixer == MODEL_KIMI_DELTA_NET || mixer == MODEL_ATTENTION_MAMBA2;
}

/** Whether it keeps keys and values of each position. */
static inline bool model_mixer_has_keys(enum model_mixer mixer)
{
    return mixer == MODEL_ATTENTION || mixer == MODEL_LATENT_ATTENTION ||
           mixer == MODEL_RUN_ATTENTION || mixer == MODEL_ATTENTION_MAMBA2;
}
/** What a feed-forward makes of its gate. */
struct model_activation {
    enum kern_activation kind;
    struct kern_curve curve;
};

/** What one layer is made of. */
struct model_layer_shape {
    enum model_mixer mixer;
    uint32_t n_heads, n_kv_heads;  /* H, G */
    uint32_t key_size, value_size; /* elements of a head of q and k, and of v */
    uint32_t kv_rank;              /* of latent attention: elements of a compressed row */
    float scale;                   /* of the scores */
    bool slides;                   /* a layer of the sliding kind */
    uint32_t window;               /* keys that a query sees, itself included; 0: all before it */
    uint32_t chunk;                /* it sees those of its own run of so many positions; 0: all */
    int rope;                      /* enum model_rope_use */
    bool bare_qk_norm;             /* heads of q and k are normed after the rotation, no gain */
    bool tempered;                 /* queries grow with their position */
    uint32_t kv_layer;             /* whose keys and values it uses; its own number: its own */
    int kept;                      /* where later layers find its keys and values; -1: nowhere */
    uint32_t run;                  /* tokens that each further key is made of; 0: there are none */
    bool runs_overlap;             /* and of those of the run before; an indexer chooses */
    bool sparse;                   /* its queries see the keys that an indexer has chosen */
    uint32_t index_layer;          /* if sparse: whose choice; its own number: its own */
    uint32_t pool;                 /* and positions that each key of the indexer stands for; 0: 1 */
    bool ngrams;                   /* it begins with an embedding of the last tokens */
    uint32_t n_ff;                 /* F of the dense feed-forward; 0: none */
    bool sparse_gates;             /* they keep what lies above a threshold of their row: */
    float sparsity;                /* so many standard deviations above the mean */
    uint32_t n_experts;            /* E; 0: none */
    uint32_t n_ff_expert;          /* F of each of them */
    uint32_t n_experts_used;       /* how many of them a token goes through */
    struct model_activation activation;        /* of the dense feed-forward and the shared expert */
    struct model_activation expert_activation; /* of the others */
};
enum { MODEL_N_KEPT = 2 };

/** What MODEL_RUN_ATTENTION ends with: heads in groups, each made one narrower row. */
struct model_run_hparams {
    uint32_t n_groups, rank;
};

/** The indexer of sparse layers: see struct kern_choose. */
struct model_index_hparams {
    uint32_t n_heads, key_size; /* Hi, di */
    uint32_t n_best;            /* K: positions, or runs of them */
    uint32_t together, n_local; /* keys of a run; of the last runs so many are always chosen */
    bool means;                 /* keys of pools are plain means, normed and turned after that */
    bool fill;    /* the first positions of one more pool are chosen in place of a short tail */
    bool as_one;  /* its heads choose as one, without weights */
    bool weighed; /* its heads choose as one, with weights of each token; else each for itself */
    bool halves;  /* RoPE as in struct model_hparams, of its queries and keys */
    bool at_end;  /* their last elements are rotated, not the first */
    float eps;    /* of the norm of its keys */
};

/** The mixture of experts. */
struct model_expert_hparams {
    uint32_t n, n_used;   /* E and how many of them a token goes through at most; 0: dense */
    bool n_used_chosen;   /* by the caller: the file may say another number */
    uint32_t n_ff_shared; /* of the expert that all tokens go through; 0: none */
    uint32_t width;       /* of what experts read and write; 0: D */
    enum kern_gating gating;
    uint32_t n_groups, n_groups_used;
    bool groups_by_best; /* as in struct kern_route */
    bool normalise;      /* shares are divided by their sum */
    uint32_t n_by_token; /* in so many first layers a token's id says which */
    float sum_eps;       /* added to the sum; 0: it counts as 6.1e-5 at least */
    float scale;         /* shares are multiplied by it */
};

/** Query and key heads are stretched by 1 + scale ln(1 + floor((position + offset) / length)). */
struct model_temperature {
    float scale; /* 0: none */
    uint32_t length, offset;
};

enum { MODEL_NGRAMS_MOST = 8, MODEL_NGRAM_ROWS = 64 };
/**
 * The embedding of the last tokens: for each number of them from 2 to `most`, and each of n_heads
 * hashes, one of the rows of a table. Row k of a token is hash % n_rows[k] + first_row[k].
 */
struct model_ngram_hparams {
    uint32_t most, n_heads;
    uint32_t width;  /* of a row of the table */
    uint32_t n_taps; /* of a convolution, `most` tokens apart */
    uint32_t end;    /* what stands for tokens before one of this id, and before a sequence */
    uint64_t multipliers[MODEL_NGRAMS_MOST]; /* of a token, of the one before it, ... */
    uint64_t first_row[MODEL_NGRAM_ROWS], n_rows[MODEL_NGRAM_ROWS];
};

/** Rows of the table that a token has. */
static inline size_t model_ngram_rows(const struct model_ngram_hparams *h)
{
    return (size_t)(h->most - 1) * h->n_heads;
}

/** Layers with a state instead of keys. A short convolution has only the first two. */
struct model_recurrent_hparams {
    uint32_t n_taps;     /* of the convolution */
    uint32_t n_inner;    /* I: all heads' values */
    uint32_t state;      /* d, or N */
    uint32_t n_heads;    /* of values */
    uint32_t n_groups;   /* heads of keys */
    bool grouped;        /* value heads of one key head lie together */
    float dt_min;        /* steps are at least this; 0: any */
    float least_log;     /* as in struct kern_recur */
    enum kern_unit unit; /* what queries and keys are divided by */
    float unit_eps;
    float scale; /* of the queries */
};

/** The layers of which a cache has another type. Those that use the keys of others have no own. */
enum model_kv_where {
    MODEL_KV_LAYERS,  /* of these numbers */
    MODEL_KV_WINDOWS, /* whose queries see a window, or a run of positions */
    MODEL_KV_FULL,    /* whose queries see all positions before */
    MODEL_KV_INDEXER, /* not layers: the keys of indexers; of keys only */
    MODEL_KV_N_WHERE
};
/**
 * A type of a cache: GGUF_TYPE_F32 (0: numbers as they are) or one of KERN_ROUND_TYPES, with the
 * scale of struct kern_round (kernels/operations.h; 0: none).
 */
struct model_kv_type {
    enum gguf_type type;
    float scale;
    bool calibrated; /* the scale is the layer's in `scales` of struct model_kv_types */
};
/** What a layer's keys are divided by, and its values. */
struct model_kv_scales {
    float k, v; /* above 0; 0 counts as 1 */
};
struct model_kv_exception {
    enum model_kv_where where;
    uint32_t from, to; /* of MODEL_KV_LAYERS: from is the first, to the last; UINT32_MAX: all */
    struct model_kv_type type;
};
/** The last one that a layer is among counts. */
struct model_kv_exceptions {
    uint32_t n;
    struct model_kv_exception at[32];
};

/**
 * What keys and values of attention are rounded to, as a key/value cache of these types would hold
 * them. All zero: as they are.
 */
struct model_kv_types {
    struct model_kv_type k, v;
    bool unturned; /* blocks hold heads as they are, not turned as llama.cpp's caches turn them */
    struct model_kv_exceptions k_but, v_but; /* of these layers another type */
    const struct model_kv_scales *scales;    /* [L], borrowed; NULL: all are 1 so far */
};

/** Per-layer arrays have n_layers + n_bound entries. */
struct model_hparams {
    char architecture[64];
    char name[128];     /* general.name, cut; "" where absent */
    uint32_t n_layers;  /* L: those that are evaluated */
    uint32_t n_nextn;   /* blocks after them that predict further tokens */
    bool nextn_stream;  /* these begin with rows before the output norm, not after it */
    uint32_t n_bound;   /* of those, how many are bound: layer L, or none */
    uint32_t n_embd;    /* D */
    uint32_t n_streams; /* S: rows of D that a token's residual has */
    uint32_t n_vocab;   /* V: rows of the head */
    uint32_t n_ctx_train;
    struct model_layer_shape *layers;
    float eps;           /* of the norms */
    bool layer_norm;     /* they subtract the mean */
    bool norm_bias;      /* a bias is added in them */
    bool no_output_bias; /* attn_output.bias is not added */
    bool parallel;       /* attention and feed-forward read the same normalised rows */
    float embedding_scale, residual_scale, logit_scale, value_scale; /* 1 where there is none */
    float attn_soft_cap, logit_soft_cap;                             /* 0: none */
    bool rope_halves; /* pairs (i, i + n_rot / 2) instead of (2i, 2i + 1) */
    struct model_rope ropes[MODEL_N_ROPES];
    struct model_temperature temperature;
    struct model_expert_hparams experts;
    uint32_t q_rank; /* of latent attention; 0: queries are not compressed */
    struct model_run_hparams runs;
    struct model_index_hparams index;
    bool compressed_keys; /* its queries meet the compressed rows; else keys are made of them */
    struct model_recurrent_hparams recurrent;
    struct model_ngram_hparams ngrams;
    uint32_t stream_rank;    /* of mixers of streams of low rank; 0: they are not */
    uint32_t residual_block; /* x begins anew after so many layers, and is kept; 0: never */
    float stream_eps, stream_magnitude; /* of the weights of streams: struct kern_stream_rule */
    uint32_t stream_rounds;   /* how often these are divided by their sums; 0: streams stay apart */
    uint32_t per_layer_width; /* P: of the further input of each layer; 0: none */
    bool sample_deviation;    /* of sparse gates: by F - 1 instead of F */
    float stream_least;       /* mean square that a stream made of another has at least */
    struct model_kv_types kv; /* the caller's choice, not the file's */
};

/** Floats of a token's row of the residual stream: its streams one after the other, S * D. */
static inline size_t model_residual_width(const struct model_hparams *h)
{
    return (size_t)h->n_streams * h->n_embd;
}

/** So many keys a query of a sparse layer sees, its own among them, without leaving one out. */
static inline size_t model_index_limit(const struct model_hparams *h, size_t i_layer)
{
    size_t pool = h->layers[i_layer].pool;
    return pool > 0 ? h->index.n_best / pool * pool + pool - 1
                    : (size_t)h->index.n_best * h->index.together;
}

/** Whether a layer's keys and values are the compressed rows of latent attention, one of a position
 * for all heads. */
static inline bool model_keys_are_compressed(const struct model_hparams *h, size_t i_layer)
{
    return h->layers[i_layer].mixer == MODEL_LATENT_ATTENTION && h->compressed_keys;
}

#endif
