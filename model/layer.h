/** The weights of a layer: handles into the file's mapping. data NULL: the layer has none. */
#ifndef MODEL_LAYER_H
#define MODEL_LAYER_H

#include "model/hparams.h"

struct model_tensor;

/** y = weight x + bias. */
struct model_product {
    struct kern_weight weight, bias;
};

/** Gain and bias of a norm. */
struct model_norm {
    struct kern_weight gain, bias;
    float eps; /* 0: the model's */
};

/** One expert, or a feed-forward that all tokens go through. Without a gate: up alone. */
struct model_ffn {
    struct model_product gate, up, down;
};

struct model_experts {
    struct model_product router;       /* [E, D] */
    struct model_norm router_norm;     /* before the router alone */
    struct kern_weight selection_bias; /* [E] */
    const uint8_t *by_token; /* host, int32 [V, used]: the experts of each id; NULL: chosen */
    struct model_ffn *each;  /* E of them */
    struct model_ffn shared; /* every token's */
    struct model_product shared_gate;   /* [1, D] */
    struct model_norm norm, post_norm;  /* of the experts beside a dense feed-forward */
    struct model_norm dense_post_norm;  /* of that feed-forward */
    struct model_product narrow, widen; /* the experts work between these */
    struct model_norm narrow_norm;      /* of their sum, before widen; or none */
};

struct model_latent {
    struct model_product q_down; /* [q rank, D]; without it q is not compressed */
    struct model_norm q_norm;
    struct model_product kv_down; /* [kv rank + n_rot, D] */
    struct model_norm kv_norm;
    struct kern_weight k_up, v_up; /* [H * kv rank, nope], [H * dv, kv rank] */
    size_t step; /* bytes from one head's matrices to the next's; 0: they lie one after the other */
    struct model_product kv_up; /* older: [H * (nope + dv), kv rank] */
};

/** What chooses a sparse layer's keys. */
struct model_indexer {
    struct model_product q, k;        /* [Hi * di, D or q rank], [di, D] */
    struct model_norm q_norm, k_norm; /* di; q_norm of each head, or none */
    struct model_product weights;     /* [Hi, D]; or none */
};

/** What makes further keys of d elements: see struct kern_compress. w: d, or where runs overlap 2
 * d.
 */
struct model_compressor {
    struct model_product kv, gate; /* [w, D] */
    struct kern_weight ape;        /* [m, w] */
    struct model_norm norm;        /* d */
};

struct model_recurrent {
    struct model_product
        in; /* q, k, v; of Mamba-2: z, x, B, C, dt; of a short convolution: B, C, x */
    struct model_product gate;   /* z */
    struct model_product joined; /* older: q, k, v, z of each key head, in place of both */
    struct model_product beta, alpha, beta_alpha; /* the first two, or the third */
    struct model_product gate_low, alpha_low;     /* of Kimi's: before gate and alpha */
    struct kern_weight taps, taps_bias;
    struct kern_weight k_taps, v_taps; /* where q, k and v are apart: taps are q's */
    struct kern_weight a, dt_bias, skip;
    struct model_norm norm;
    struct model_product out;
};

/** A further input of each layer (Gemma 3n and 4). */
struct model_per_layer_input {
    struct kern_weight embedding; /* [V, P]: this layer's columns */
    struct model_product project; /* [P, D]: this layer's rows */
    struct model_product gate, out;
    struct model_norm post_norm;
};

/** How streams of the residual are mixed; data NULL: there is one stream. Where layers read earlier
 * residuals the product alone, [1, D]. */
struct model_stream_mixer {
    struct model_product product; /* [(2 + S) S, S * D]; after the last layer [S, S * D] */
    struct kern_weight scale, base;
    /* Mixers of low rank, whose product is [r, S * D], have these, too: */
    struct model_norm norm;      /* of each stream */
    struct model_product up;     /* [S * D, r] */
    struct model_product inject; /* [S, S * D]: shares of what the branch makes */
};

/** An embedding of each token's last tokens, which a layer adds to the streams. */
struct model_ngrams {
    struct kern_weight table; /* rows that hashes name: not walked with a layer's matrices, as few
                               * of its bytes are read */
    const struct model_tensor *source;                 /* of the table */
    struct model_product key, value;                   /* [S * D, D], [D, D] */
    struct model_norm key_norm, query_norm, taps_norm; /* of each stream */
    struct kern_weight taps;                           /* [S * D, taps] */
};

/** Streams of which a layer works on the first one (Gemma 3n). */
struct model_altup {
    struct model_norm router_norm;
    struct model_product router;           /* [S, D] */
    struct model_product predict, correct; /* [S * S, S], [S, S]: of the router's result */
    struct model_norm scale;               /* of what the further input's gate reads: a gain */
    struct model_product low, high;        /* beside attention (Laurel): [R, D], [D, R] */
    struct model_norm low_post_norm;
};

struct model_layer {
    struct model_norm attn_norm, attn_post_norm, ffn_norm, ffn_post_norm; /* 1 row of D */
    struct model_product q, k, v, output;
    struct model_norm q_norm, k_norm; /* of each head, or of all heads as one vector */
    struct model_product gate;        /* [H, D] or [H * dv, D]: of attention's result */
    struct kern_weight sinks;         /* H */
    struct model_latent latent;
    struct model_indexer indexer;
    struct model_compressor compressor, index_compressor;
    struct kern_weight output_groups; /* [groups * rank, H * d / groups] */
    struct model_recurrent recurrent;
    struct model_ffn ffn; /* dense */
    struct model_experts experts;
    struct model_per_layer_input input;
    struct model_stream_mixer attn_mixer, ffn_mixer; /* around each branch */
    struct model_ngrams ngrams;
    struct model_altup altup;
    float output_scale; /* of the residual stream after the layer; 1: none */
};

/**
 * What a block that predicts the token after the next has beside those of a layer. It makes x of
 * the next token's embedding and of the hidden row before the head, both normalised.
 */
struct model_nextn {
    struct kern_weight embedding; /* [V, D]; may be the model's */
    struct model_norm token_norm, hidden_norm;
    struct model_product join; /* [D, 2 D]: of the token, then of the hidden row */
    struct model_norm norm;    /* before the head; may be the model's */
    struct model_product head; /* [V, D]; may be the model's */
};

#endif
