/**
 * The files of an open model, one by one, and what is at their paths by now: tensors of a file
 * that has changed are taken from the new one, by model_swap. A file is taken whole or not at all.
 *
 * What is swapped in stays in a mapping, as the model's own tensors do: it takes no memory but the
 * page cache, which the system can take back, and whatever is written to it is seen
 * (model_check_unchanged). A file whose tensors are all replaced keeps only its directory.
 */
#ifndef CLI_SESSION_SHARDS_H
#define CLI_SESSION_SHARDS_H

#include <stdbool.h>

#include "base/digest.h"
#include "cli/session/backends.h"
#include "model/swap.h"

struct cli_shards;

/**
 * Begin to watch. file: the model's, its directories kept (gguf_keep_directories); both must
 * outlive the result but for its closing.   Fails: STATUS_MEMORY.
 */
enum status cli_shards_open(struct cli_shards **out, struct model *model, struct gguf_file *file,
                            struct status_why *why);
/** After the model is closed. NULL is allowed. */
void cli_shards_close(struct cli_shards *shards);

/**
 * Take the tensors of all files that have changed: another time of modification (to the
 * nanosecond; not only a newer one), another size or another file of that name; or pages that were
 * lost. Says on standard error what is taken, what is refused, and what cannot be read and is tried
 * again next time.   backends: that may have the tensors that are replaced.   whose: "", or what
 * follows the name of a tensor. Returns how many tensors come from another file now. Cost: a stat
 * for each file; for each changed one its directory and a digest of its tensors.
 */
size_t cli_shards_reload(struct cli_shards *shards, const struct cli_backends *backends,
                         const char *whose);

/** Whether pages are lost of a file that is in force (cli_mapping_lost). */
bool cli_shards_lost(const struct cli_shards *shards);

/** A tensor that is not what the opened model has. */
struct cli_swapped {
    const char *name;
    const char *type;
    uint64_t n_bytes;
    const char *sha256; /* of its bytes */
};

/** The next one from tensor *at of the directory on; moves *at past it. false: there is none. */
bool cli_shards_next(const struct cli_shards *shards, size_t *at, struct cli_swapped *out);

/** Say which tensors take no part in the evaluation, in the words that tools look for. */
void cli_shards_print_unused(const struct cli_shards *shards);

#endif
