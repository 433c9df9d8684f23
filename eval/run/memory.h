/** How much memory this process holds, as Linux tells; for a bound said before a run. */
#ifndef EVAL_RUN_MEMORY_H
#define EVAL_RUN_MEMORY_H

#include "gguf/file.h"

/** Bytes, each part and the whole. */
struct eval_memory {
    double weights; /* mapped files, counted at their size */
    double present; /* what the process already holds beside them */
    double scorer;  /* residual stream, slab, scratch of the forward pass and of the backend */
    double scores;  /* table, rows and targets of a batch */
    double before;  /* the most that the process held until the bound was made */
    double total;   /* the sum of the parts; at least `before` */
    bool on_device; /* the scorer's part is memory of a device; the total has it all the same */
};

/** Code that a run is the first to touch, positions of a tile, state of a slab's scores. */
#define EVAL_MEMORY_SMALL_THINGS 1.5e6

/** What a thread uses of its stack: three of the largest frames, in whole pages. */
#define EVAL_MEMORY_THREAD 32768.0

/** Bytes of the file's shards, mapped whole. */
double eval_memory_mapped(const struct gguf_file *file);

/**
 * Bytes of this process that are resident now, but for the mapped shards of `file`, which
 * come and go with what is read. Where /proc does not tell, the most that were ever resident.
 */
double eval_memory_present(const struct gguf_file *file);
/** Bytes of the mapped shards alone, to be taken off where several files are open. */
double eval_memory_resident(const struct gguf_file *file);

#endif
