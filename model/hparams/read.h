/** Reading the hyper-parameters of a file: what all architectures share. For model/ only. */
#ifndef MODEL_HPARAMS_READ_H
#define MODEL_HPARAMS_READ_H

#include "model/hparams.h"
#include "model/hparams/arch_keys.h"
#include "model/hparams/keys.h"
#include "model/model.h"
#include "model/remarks.h"

struct model_arch;

enum { MODEL_MAX_BLOCKS = 1024 };

/** Where hyper-parameters come from. */
struct model_reading {
    struct model_keys keys;
    const struct model_arch *arch;
    const struct model_arch *const *archs; /* all, and NULL */
    const struct model_options *options;
    struct model_remarks *remarks;
    uint32_t n_blocks; /* layers and the blocks after them: what arrays have a value for */
};

/**
 * Read keys of the model, not of its layers, into the members that have them: the rows of a list
 * that no code reads, but for those of which the architecture has another that reads the key.
 */
void model_hparams_read_keys(struct model_hparams *h, const struct model_reading *r,
                             const struct model_arch_key *list);
/** Members that have a default in the table get it. */
void model_hparams_default(struct model_hparams *h);

/**
 * Read every hyper-parameter except n_vocab (the tokenizer's), what is common first, then what the
 * architecture adds. Sizes are bounded here, so that no later product of them can overflow.
 * h: zero-initialised; release with model_hparams_free(), also after a failure, which r->keys
 * keeps.
 */
void model_hparams_read(struct model_hparams *h, struct model_reading *r);

/** Its parts, in this order; each wants those before it. First: layers and the blocks after them.
 */
void model_nextn_read(struct model_hparams *h, const struct model_reading *r);
void model_heads_read(struct model_hparams *h, const struct model_reading *r);
void model_experts_read(struct model_hparams *h, const struct model_reading *r);
/** For architectures that have them: limits of a kind of feed-forward, each 0 (none) or more. */
void model_limits_read(const struct model_reading *r, const char *suffix, float *limits);
/** SwiGLU within a limit, as a kind has it; 0: without one. */
struct model_activation model_limited(enum kern_activation kind, float limit);

/** Limits of SwiGLU by the key of experts that are chosen, or by that and the key of the others: of
 * one kind, none without a key, and none where they are not above `least`. */
void model_expert_clamps_read(struct model_hparams *h, const struct model_reading *r,
                              enum kern_activation kind, float least);
void model_clamps_read(struct model_hparams *h, const struct model_reading *r,
                       enum kern_activation kind, float least);

void model_windows_read(struct model_hparams *h, const struct model_reading *r);

/** For architectures that have it: rotated elements of layers that slide, by their key. */
void model_sliding_rope_read(struct model_hparams *h, const struct model_reading *r);

/** For architectures that have it: layers that see all keys have no positions. */
void model_still_full_layers(struct model_hparams *h);

/** For architectures that have it: all queries grow with their position. */
void model_temperature_read(struct model_hparams *h, const struct model_reading *r);

/** An indexer's keys; its heads choose as one. All layers are sparse and choose for themselves. */
void model_indexer_read(struct model_hparams *h, const struct model_reading *r);

/** Sizes of the layers with a state ("ssm.*"), checked against each other. */
void model_recurrent_read(struct model_hparams *h, const struct model_reading *r);

/**
 * Refuse a file without a key that its architecture needs, or with half of a pair of keys; say what
 * else it lacks, and what is taken. For the end of reading.
 */
void model_needs_check(const struct model_hparams *h, const struct model_reading *r);
/** Whether every file of an architecture has a key. */
bool model_key_is_needed(const struct model_arch *arch, const char *suffix);

extern const struct model_range model_heads_range, model_head_size_range, model_ff_range,
    model_width_range, model_positions_range;

#endif
