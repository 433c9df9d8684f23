/**
 * Scales of a cache of floats of 8 bits that a text gives, as vLLM's --calculate-kv-scales took
 * them of its first forward pass: of each layer's keys the largest magnitude / 200, of its values
 * the largest / 100 (`calc_kv_scales`, K_SCALE_CONSTANT, V_SCALE_CONSTANT). In latent attention
 * the keys are the compressed rows without the rotated part, and their scale serves for both.
 */
#ifndef ACTIVATIONS_CALIBRATION_H
#define ACTIVATIONS_CALIBRATION_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct model;
struct model_kv_scales;
struct kern_backend;

/**
 * Evaluate one sequence, each layer over what those before it made of keys and values in their
 * caches, and let the model have the scales.
 * scales: [n_layers], all zero; the model borrows it. 0 stays where a layer has no keys of its own,
 * or all are 0.
 * Fails: STATUS_USAGE (an id beyond the vocabulary), STATUS_NONFINITE (a key or a value is not
 *        finite), STATUS_MEMORY, STATUS_DEVICE, STATUS_CANCELLED.
 */
enum status act_calibrate(struct model *model, struct kern_backend *backend, const int32_t *tokens,
                          size_t n_tokens, struct model_kv_scales *scales, struct status_why *why);

#endif
