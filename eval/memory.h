/** How much memory this process holds, as Linux tells; for a bound said before a run. */
#ifndef EVAL_MEMORY_H
#define EVAL_MEMORY_H

#include "gguf/file.h"

/**
 * Bytes of this process that are resident now, but for the mapped shards of `file`, which
 * come and go with what is read. 0 where /proc does not tell.
 */
double eval_memory_present(const struct gguf_file *file);

#endif
