/**
 * What differs between architectures, as data and a few small functions. The forward pass is one,
 * driven by the hyper-parameters and by what is bound (model/forward/). A new architecture of known
 * parts is a file of its own and a line in list.h (and its file's in CMakeLists.txt).
 *
 * Zero means, of each field: as LLaMA has it.
 */
#ifndef MODEL_ARCH_H
#define MODEL_ARCH_H

#include "model/folder/map.h"
#include "model/forward/trace.h"
#include "model/hparams/read.h"
#include "model/model.h"

/** Names of the tensors of a block's norms, "" : there is none; and of the last one. */
struct model_norm_names {
    const char *attn, *attn_post, *ffn, *ffn_post; /* NULL: attn_norm, "", ffn_norm, "" */
    const char *output;                            /* NULL: output_norm; "": none */
};

enum model_qk_norm {
    MODEL_QK_NORM_NONE,
    MODEL_QK_NORM_HEADS, /* of each head of q and k */
    MODEL_QK_NORM_EACH,  /* likewise, each head with gains of its own */
    MODEL_QK_NORM_WHOLE  /* of q and of k as one vector */
};

enum model_ffn_form {
    MODEL_FFN_GATED,      /* ffn_gate and ffn_up */
    MODEL_FFN_GATE_IN_UP, /* the first half of ffn_up's rows is the gate */
    MODEL_FFN_UNGATED     /* ffn_up alone */
};

/** Whether files have a tensor. Without one that they mostly have there is a remark. */
enum model_presence { MODEL_NEVER, MODEL_SOMETIMES, MODEL_MOSTLY, MODEL_ALWAYS };

/** The models or layers that a rule of presence holds for. */
enum model_where {
    MODEL_EVERYWHERE,
    MODEL_WHERE_FULL,    /* layers that do not slide */
    MODEL_WHERE_SHALLOW, /* models of fewer than 64 layers */
    MODEL_WHERE_SIGMOID  /* experts that are chosen by sigmoids */
};

/**
 * Tensors of which an architecture does not have what is usual (model/bind/presence.c): always
 * matrices, gains and what is added in a norm, sometimes other biases, scales, rope_freqs and
 * output.weight.
 */
struct model_presence_rule {
    enum model_presence presence;
    const char *tensors; /* "output.weight attn_q.bias", those of layers without "blk.0." */
    enum model_where where;
};
#define MODEL_QKV_BIASES "attn_q.bias attn_k.bias attn_v.bias attn_qkv.bias"
#define MODEL_QK_GAINS   "attn_q_norm.weight attn_k_norm.weight"

/** What a block that predicts the token after the next begins with. */
enum model_nextn_form {
    MODEL_NEXTN_UNKNOWN, /* nobody has verified it: the block is not evaluated */
    MODEL_NEXTN_NORMED,  /* hidden rows after the output norm */
    MODEL_NEXTN_STREAM,  /* hidden rows before it */
};

/** Where experts' shares are divided by their sum. */
enum model_normalise {
    MODEL_NORMALISE_YES,
    MODEL_NORMALISE_NO,
    MODEL_NORMALISE_SCALED, /* yes; a key has what they are multiplied by */
    MODEL_NORMALISE_BY_KEY  /* that, too, but only if a key says so */
};

enum model_shared_expert { MODEL_SHARED_NONE, MODEL_SHARED_PLAIN, MODEL_SHARED_GATED };

/** The models that need a key. */
enum model_when {
    MODEL_WHEN_EVER,
    MODEL_WHEN_EXPERTS, /* those with experts */
    MODEL_WHEN_SIGMOID, /* with experts whose shares are sigmoids */
    MODEL_WHEN_WINDOWS, /* with layers that slide */
    MODEL_WHEN_OTHERS,  /* with another key of the list that has this condition */
    MODEL_WHEN_ROTATED, /* with positions whose base the caller does not say */
    /* What the file says of positions, where the caller says nothing else: */
    MODEL_WHEN_YARN,
    MODEL_WHEN_LONG,       /* two lists of factors */
    MODEL_WHEN_LINEAR,     /* a stretch of all angles alike */
    MODEL_WHEN_STRETCHED,  /* a factor, and a context that it stretches */
    MODEL_WHEN_UNSTRETCHED /* the name of a stretch, and no factor */
};

/** A key that published files of an architecture have. */
struct model_key_need {
    const char *suffix; /* NULL ends a list */
    enum model_when when;
    const char *otherwise; /* a remark: what a model without it does; NULL: it is refused */
};

/** Which layers see a window of keys, of how many. */
struct model_windows {
    uint32_t period; /* layer i slides if i mod period < period - 1; 1: all slide; 0: none can */
    uint32_t length; /* where no key says it; 0: then none slides */
    bool first_full; /* of a period's layers the first sees all keys, not the last */
    bool by_array;   /* an array says which, not a period */
    bool unknown_to_llama_cpp; /* it ignores them */
};

struct model_arch {
    const char *name; /* general.architecture */
    struct model_norm_names norms;
    bool layer_norm;    /* the mean is subtracted, and a bias is added */
    bool rms_eps;       /* nevertheless their eps has the key of RMS norms */
    bool rms_by_key;    /* not subtracted where a key has an eps of RMS norms */
    bool rms_by_either; /* files may have the eps of RMS norms under the key of others */
    bool mixed;    /* a layer may lack attention (0 key/value heads) or feed-forward (width 0) */
    bool partial;  /* likewise, each part with its norm; it may also lack heads: then keys and
                    * values, too, while heads without them mean a matrix in their place */
    bool parallel; /* attention and feed-forward of the same normalised rows */
    enum model_mixer without_keys; /* of layers of 0 key/value heads; MODEL_ATTENTION: no such */
    float post_eps;                /* of the norms after branches; 0: as of the others */
    bool embedding_norm;           /* what enters the first layer is normed, without gains */
    bool altup; /* streams that each layer predicts and corrects by what the first became */

    bool unrotated;     /* nothing is rotated: rope.dimension_count may be 0, and is where absent */
    bool rope_halves;   /* pairs (i, i + n_rot / 2) instead of (2i, 2i + 1) */
    bool sliding_rope;  /* layers that slide have angles of their own, */
    float sliding_base; /* of this base where no key has it; 0: that of the others */
    bool yarn_betas;    /* llama.cpp reads their keys */
    bool yarn_factor;   /* its key replaces YaRN's magnitude; llama.cpp does not read it */
    enum model_qk_norm qk_norm;
    bool qk_norm_last;   /* after the rotation */
    bool no_output_bias; /* llama.cpp does not add attn_output.bias */
    bool bare_v_norm;
    bool rot_norm;        /* of latent attention: keys' rotated part, before the rotation */
    bool gated_attention; /* attn_q holds each head's q and gate */
    bool sinks;
    bool attn_gate;                  /* a gate of each head's result, or of each of its elements */
    bool gates_elements;             /* of each of its elements alone */
    enum kern_activation gate_kind;  /* what is made of it */
    enum kern_activation mixer_gate; /* what is made of the gate of a delta net or Mamba-2 */
    bool grouped_values; /* of a delta net: value heads of one key head lie together, whatever the
                          * keys say */
    /* Kimi's delta nets: which matrix makes what decays, and gates; NULL: "_a" and "_b" do. */
    const char *whole_f, *whole_g;
    struct model_windows windows;

    enum model_ffn_form ffn;
    enum kern_activation activation;
    enum kern_gating gating;
    bool sigmoid_if_biased; /* shares where no key has the gating, but the selection has biases */
    enum model_normalise normalise;
    enum model_shared_expert shared;
    bool shared_gate_in_up; /* the first half of ffn_up_shexp's rows is the gate */
    bool early_router;      /* it reads the rows before attention, as they are */
    bool split_ff;          /* without a width of its own an expert has F / used */
    bool weigh_inputs;      /* the share multiplies what the expert reads */
    bool experts_beside_dense;
    bool experts_by_tensors; /* tensors say which layers have them, and how wide they are */
    enum model_nextn_form nextn;
    bool nextn_slides; /* that block does, where no array says it of each block */
    struct model_presence_rule presence[4]; /* of the first that names a tensor; NULL ends */
    const char *key_blind[4]; /* keys that real files have and that mean nothing here; NULL ends */
    const struct model_arch_key *keys[4]; /* lists of keys that it has in its own way; NULL ends */
    struct model_key_need needs[10];      /* keys that published files have */
    bool needs_shares; /* and expert_weights_norm and _scale, in models with experts */
    bool old_base;     /* published files may lack rope.freq_base, which is then 10000 */

    const struct model_node *nodes; /* of its graph in llama.cpp, for traces; NULL: as usual */
    const struct model_folder_map *folder; /* how its published folders name things; NULL: unread */

    /** Read what only this architecture has, and change what it has differently. May be NULL. */
    void (*read)(struct model_hparams *h, const struct model_reading *r);
    /** Bind the tensors of layer i (MODEL_NO_LAYER: of none) that only it has. May be NULL. */
    void (*bind)(struct model *m, size_t i);
};

#define MODEL_NO_LAYER SIZE_MAX

/** All architectures, and NULL. Those who are below them, readers of keys and folders, are given
 * it. */
extern const struct model_arch *const model_archs[];
/** The architecture of a name, or NULL. */
const struct model_arch *model_arch_find(const char *name);
/** Where llama.cpp calls what norms of heads make Qcur and Kcur, as what is rotated. */
extern const struct model_node model_normed_heads_nodes[];

#endif
