/**
 * A model: the hyper-parameters and weights of a GGUF file, checked against each other.
 * Weights are handles into the file's mapping; nothing is copied or decoded here.
 */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include "gguf/meta.h"
#include "kernels/backend.h"
#include "model/tokenizer/tokenizer.h"

enum model_rope_scaling { MODEL_ROPE_NONE, MODEL_ROPE_LINEAR, MODEL_ROPE_YARN };

/** Letters as in kernels/backend.h. Per-layer arrays have n_layers entries. */
struct model_hparams {
    char architecture[64];
    char name[128];    /* general.name, cut; "" where absent */
    uint32_t n_layers; /* L */
    uint32_t n_embd;   /* D */
    uint32_t n_vocab;  /* V: rows of the head */
    uint32_t n_ctx_train;
    uint32_t *n_ff;                     /* F of each layer */
    uint32_t *n_heads;                  /* H of each layer */
    uint32_t *n_kv_heads;               /* G of each layer */
    uint32_t head_size;                 /* d of keys, queries and values */
    uint32_t n_experts, n_experts_used; /* 0: dense */
    uint32_t sliding_window;            /* 0: none */
    float rms_eps;
    uint32_t n_rot;         /* elements of a head that are rotated */
    bool rope_split_halves; /* pairs (i, i + n_rot/2) instead of (2i, 2i+1) */
    float rope_freq_base;
    enum model_rope_scaling rope_scaling;
    float rope_factor; /* > 1 stretches; 1: none */
    uint32_t rope_original_ctx;
    float rope_attn_factor;
    float yarn_ext_factor; /* how much of YaRN's mix is applied: 1 for yarn, else 0 */
    float yarn_attn_factor;
    float yarn_beta_fast, yarn_beta_slow;
    float logit_soft_cap; /* of the head; 0: none */
};

/** Weights of one expert, or of the one dense feed-forward. */
struct model_ffn {
    struct kern_weight gate, up, down;
    struct kern_weight gate_bias, up_bias, down_bias; /* data NULL: none */
};

struct model_layer {
    struct kern_weight attn_norm, ffn_norm; /* 1 row of D */
    struct kern_weight q, k, v, output;
    struct kern_weight q_bias, k_bias, v_bias, output_bias; /* data NULL: none */
    struct kern_weight router;                              /* [E, D]; data NULL: dense */
    struct model_ffn *ffn;                                  /* max(1, n_experts) of them */
};

/** What the caller may force upon a file; zero-initialise (all zero: as the file says). */
struct model_options {
    const char *tokenizer_pre;  /* NULL: the file's */
    bool allow_unknown;         /* tensors or llama.* keys not understood: warn, go on */
    bool ignore_sliding_window; /* as llama.cpp does for this architecture */
    /* --override-kv: n_overrides lines "KEY=int|float|bool|str:VALUE" */
    const char *const *overrides;
    size_t n_overrides;
    float rope_freq_base, rope_freq_scale; /* 0: the file's */
    const char *rope_scaling;              /* NULL: the file's */
    bool has_yarn_ext_factor;              /* its 0 is a value: interpolate everywhere */
    float yarn_ext_factor;
    float yarn_attn_factor, yarn_beta_fast, yarn_beta_slow; /* 0: the file's */
    uint32_t yarn_original_ctx;                             /* 0: the file's */
};

struct model;

/**
 * Read hyper-parameters, bind and check all tensors, open the tokenizer.
 * The model owns the file from now on, also on failure.
 * Fails: STATUS_UNSUPPORTED (architecture; names the supported ones), STATUS_FORMAT (missing
 *        key or tensor, wrong shape, tensor or key that is not understood).
 */
enum status model_open(struct model **out, struct gguf_file *file,
                       const struct model_options *options, struct status_why *why);
void model_close(struct model *m);

const struct gguf_file *model_file(const struct model *m);
const struct model_hparams *model_hparams(const struct model *m);
const struct model_tokenizer *model_tokenizer(const struct model *m);
const struct model_layer *model_layer(const struct model *m, size_t i);
const struct kern_weight *model_embedding(const struct model *m); /* [V, D] */
const struct kern_weight *model_output_norm(const struct model *m);
const struct kern_weight *model_head(const struct model *m); /* [V, D]; may be the embedding */
/** What kern_score() and kern_record() need of the model; hidden is to be set. */
struct kern_head model_kern_head(const struct model *m);
/** Remarks made while loading (ignored keys, tied head, ...), one per line; "" if none. */
const char *model_remarks(const struct model *m);
/** Frequencies of the rotated pairs: radians per position, scaling and factors included. */
const double *model_rope_frequency(const struct model *m);
/** What cos and sin are multiplied by. */
double model_rope_magnitude(const struct model *m);

#endif
