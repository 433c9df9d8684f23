/**
 * Rotary position embedding: the settings that a file or the caller gives, and the frequency
 * of each rotated pair that follows from them.
 */
#ifndef MODEL_ROPE_H
#define MODEL_ROPE_H

#include "model/keys.h"
#include "model/model.h"

/**
 * Read the rope keys into h, whose n_ctx_train and head_size are set, then let the caller's
 * options replace what the file says.
 * Fails: STATUS_FORMAT (a key), STATUS_USAGE (an option), STATUS_UNSUPPORTED (scaling type).
 */
enum status model_rope_read(struct model_hparams *h, const struct model_keys *keys,
                            const struct model_options *options, struct status_why *why);

/**
 * frequency[i], i < n_rot / 2: radians per position of pair i.
 * factors: n_rot / 2 divisors of the unscaled frequencies (Llama 3.1's rope_freqs.weight; 1
 * elsewhere). Source of the formulas: the RoPE and YaRN papers; docs/forward.md has them.
 */
void model_rope_frequencies(const struct model_hparams *h, const float *factors, double *frequency);

/** What cos and sin are multiplied by: the attention factors, and YaRN's own. */
double model_rope_magnitude_of(const struct model_hparams *h);

#endif
