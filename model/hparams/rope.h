/**
 * Rotary position embedding: the settings that a file or the caller gives, and the frequency
 * of each rotated pair that follows from them.
 */
#ifndef MODEL_HPARAMS_ROPE_H
#define MODEL_HPARAMS_ROPE_H

#include "model/hparams/read.h"

/**
 * Read the rope keys into h, whose layers are set, then let the caller's options replace what the
 * file says (of full attention's angles). Says which angles each layer uses.
 * Fails: STATUS_FORMAT (a key), STATUS_USAGE (an option), STATUS_UNSUPPORTED (scaling type).
 */
void model_ropes_read(struct model_hparams *h, const struct model_reading *r);

/**
 * frequency[i], i < n_rot / 2: radians per position of pair i.
 * factors: n_rot / 2 divisors of the unscaled frequencies, or NULL: all 1. Source of the formulas:
 * the RoPE and YaRN papers; docs/forward.md has them.
 */
void model_rope_pairs(const struct model_rope *rope, const float *factors, double *frequency);

#endif
