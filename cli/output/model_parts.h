/** Parts of the object about a model: where it is from, what it is a mixture of, and what a cache
 * of it holds. */
#ifndef CLI_OUTPUT_MODEL_PARTS_H
#define CLI_OUTPUT_MODEL_PARTS_H

#include "base/json/build.h"
#include "model/model.h"

/** "origins": what the metadata say the model was made from; absent where they say nothing. */
void cli_json_add_origins(struct base_json *json, cJSON *o, const struct gguf_file *file);
/** "types": tensors, weights and bytes of each type that is in force, the most weights first. */
void cli_json_add_types(struct base_json *json, cJSON *o, const struct model *model);

/**
 * "cache": how many numbers a key/value cache keeps of each token, and what does not grow with
 * the tokens. Layers that use another one's keys and values add nothing.
 */
void cli_json_add_cache(struct base_json *json, cJSON *o, const struct model_hparams *hparams);
/** "kv_types", unless neither keys nor values are rounded. */
void cli_json_add_kv_types(struct base_json *json, cJSON *o, const struct model_hparams *hparams);

#endif
