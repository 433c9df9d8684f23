/** --override-kv: keys that the caller puts in place of a file's. */
#ifndef MODEL_OVERRIDES_H
#define MODEL_OVERRIDES_H

#include "model/model.h"
#include "model/remarks.h"

/**
 * Apply the lines "KEY=TYPE:VALUE" (TYPE int, float, bool or str) of the options to the file,
 * before anything is read from it. A key that the file does not have is added, with a remark.
 * Fails: STATUS_USAGE (a line that is not of this form), STATUS_MEMORY.
 */
enum status model_overrides_apply(struct gguf_file *file, const struct model_options *options,
                                  struct model_remarks *remarks, struct status_why *why);

#endif
