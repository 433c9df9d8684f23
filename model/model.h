/**
 * A model: the hyper-parameters and weights of a GGUF file, checked against each other.
 * Weights are handles into the file's mapping; nothing is copied or decoded here.
 */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include "gguf/meta.h"
#include "model/layer.h"
#include "model/tokenizer/compare/compare.h"

/** Whether the block that predicts the token after the next is bound, too. */
enum model_nextn_wish {
    MODEL_NEXTN_LEFT,     /* it is not */
    MODEL_NEXTN_IF_THERE, /* where the file has it, whole, and its form is known */
    MODEL_NEXTN_WANTED    /* else the file is refused */
};

/** What the caller may force upon a file; zero-initialise (all zero: as the file says). */
struct model_options {
    const char *tokenizer_pre; /* NULL: the file's */
    bool allow_unknown;        /* tensors or keys of the architecture not understood: warn, go on */
    bool llama_compat;         /* what llama.cpp does where it departs from a model's authors */
    enum model_nextn_wish nextn;
    /* --override-kv: n_overrides lines "KEY=int|float|bool|str:VALUE" */
    const char *const *overrides;
    size_t n_overrides;
    float rope_freq_base, rope_freq_scale; /* 0: the file's */
    const char *rope_scaling;              /* NULL: the file's */
    bool has_yarn_ext_factor;              /* its 0 is a value: interpolate everywhere */
    float yarn_ext_factor;
    float yarn_attn_factor, yarn_beta_fast, yarn_beta_slow; /* 0: the file's */
    uint32_t yarn_original_ctx;                             /* 0: the file's */
    uint32_t n_experts_used; /* experts that a token goes through; 0: the file's number */
};

struct model;

/**
 * Open a file that is to be evaluated: a GGUF file, or a published folder as one.
 * tokens: a GGUF file of the same model, or a folder, also the same one, whose tokens a folder
 * gets; NULL: it has none. Fails: as gguf_open; model_folder_open (model/folder/folder.h);
 * STATUS_USAGE (tokens for a GGUF file).
 */
enum status model_file_open(struct gguf_file **out, const char *path, const char *tokens,
                            struct status_why *why);

/** Open a file to list what it holds: as gguf_list; a folder has its tokens if they can be read. */
enum status model_file_list(struct gguf_file **out, const char *path, struct status_why *why);
/** Whether a path is a published folder. */
bool model_is_folder(const char *path);
/**
 * Open a GGUF file or a folder for its tokens alone, the keys tokenizer.*: of a folder,
 * tokenizer.json and the small files beside it are read. n_ids: how many tokens a folder is to
 * have; 0: as many as it names. Fails: as gguf_list; STATUS_UNSUPPORTED, STATUS_FORMAT (of what
 * tokenizer.json has).
 */
enum status model_tokens_open(struct gguf_file **out, const char *path, uint64_t n_ids,
                              struct status_why *why);

/**
 * Read hyper-parameters, bind and check all tensors, open the tokenizer.
 * The model owns the file from now on, also on failure.
 * Fails: STATUS_UNSUPPORTED (architecture; names the supported ones), STATUS_FORMAT (missing
 *        key or tensor, wrong shape, tensor or key that is not understood).
 */
enum status model_open(struct model **out, struct gguf_file *file,
                       const struct model_options *options, struct status_why *why);
/**
 * The same model once more, to swap tensors in it alone (model/swap.h): of the same file, with the
 * tensors that m uses now. m must outlive it.   Fails: STATUS_MEMORY.
 */
enum status model_share(struct model **out, const struct model *m, struct status_why *why);
/**
 * Round keys and values from now on, as a cache of these types would hold them: keys after RoPE,
 * values as attention reads them. Not while a forward pass is running.
 * Fails, leaving the model as it was: STATUS_UNSUPPORTED (a head that is no whole number of the
 *        type's blocks; compressed rows, which are both, and two types), STATUS_USAGE (an exception
 *        of no layer).
 */
enum status model_round_kv(struct model *m, const struct model_kv_types *types,
                           struct status_why *why);

/** Whether a type's scale is of each layer's own: model_kv_types.scales is then to be set. */
bool model_kv_calibrated(const struct model_kv_types *types);
/** "F8_E4M3", with a scale "F8_E4M3@0.02", in the fewest digits that tell it, or
 * "F8_E4M3@calibrated". */
enum { MODEL_KV_TYPE_NAME = 48 };
const char *model_kv_type_name(char out[MODEL_KV_TYPE_NAME], struct model_kv_type type);
void model_close(struct model *m);

/**
 * The hyper-parameters of a file alone, without its weights and its vocabulary: all but n_vocab.
 * Keys that are not understood are passed over.
 * h: released with model_hparams_free, also after a failure.   Fails: as model_open, of the keys.
 */
enum status model_hparams_look(struct model_hparams *h, struct gguf_file *file,
                               struct status_why *why);
/** A zero-initialised object is allowed. */
void model_hparams_free(struct model_hparams *h);

const struct gguf_file *model_file(const struct model *m);
const struct model_hparams *model_hparams(const struct model *m);
const struct model_tokenizer *model_tokenizer(const struct model *m);
const struct model_layer *model_layer(const struct model *m, size_t i);
const struct model_norm *model_output_norm(const struct model *m);
const struct kern_weight *
model_head(const struct model *m); /* [V, D]; may be the embedding's bytes */
/** What kern_score() and kern_record() need of the model; hidden is to be set. */
struct kern_head model_kern_head(const struct model *m);
/** The head of the block that predicts the token after the next; with model_options.nextn only. */
struct kern_head model_nextn_head(const struct model *m);
/** Remarks made while loading (ignored keys, tied head, ...), one per line; "" if none. */
const char *model_remarks(const struct model *m);

/** Told of each weight of a layer, and of the share of tokens that go through it (experts: used /
 * E). */
typedef void model_weight_fn(void *user, const struct kern_weight *weight, double share);
/** Walk the matrices of a layer that are multiplied, in the order of their use; of layer n_layers
 * those of the block that predicts the token after the next, but for its head. */
void model_layer_walk(const struct model *m, size_t i, model_weight_fn *tell, void *user);

/**
 * frequency[j], j < n_rot / 2: radians per position of pair j, scaling and factors included, for
 * sequences of n_positions; returns what cos and sin are multiplied by.
 */
double model_rope_frequencies(const struct model *m, enum model_rope_use use, size_t n_positions,
                              double *frequency);
/** Sequences of more positions have other frequencies (longrope); SIZE_MAX: all have the same. */
size_t model_rope_boundary(const struct model *m);

#endif
