/** What places of the forward pass are called in llama.cpp's graphs. */
#ifndef TRACE_NAMES_H
#define TRACE_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text/string.h"
#include "model/forward/forward.h"

/** The name that we give a place: llama.cpp's, of the architectures that have most in common. */
const char *trace_place_name(enum model_place place);
/** The operation that llama.cpp prints for it; several places share a name, not an operation. */
struct base_string trace_place_op(enum model_place place);
/** What it is, for sentences: "Kcur after RoPE". */
const char *trace_place_meaning(enum model_place place);

/** "Qcur-3", or without a layer "result_norm". Returns `out`. */
enum { TRACE_NAME_BYTES = 96 };
const char *trace_tensor_name(char out[TRACE_NAME_BYTES], enum model_place place, int layer);

/**
 * Whether a node of llama.cpp's graph stands for a place. The last of several in one graph does:
 * before it come those without a bias or a scale.
 * name: without its layer, or that of the weight that made it ("blk.attn_output.weight").
 * op: NULL, of arrays without one: any.   arch: general.architecture.
 */
bool trace_place_match(enum model_place place, const char *arch, const char *name, const char *op);

#endif
