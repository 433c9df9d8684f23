/** Tensors of other files in an open model, and what such a model is called in documents. */
#ifndef CLI_SESSION_SWAPS_H
#define CLI_SESSION_SWAPS_H

#include <stdatomic.h>

#include "base/json/build.h"
#include "cli/session/models.h"

struct cli_donor;

/** A tensor of the model's file, and the one of another file that is used for it. */
struct cli_swap {
    const struct gguf_tensor *own, *from;
    struct cli_donor *donor;
    char sha256[BASE_HEX]; /* of its bytes */
};

/** Zero-initialise but for `model`, whose id and digest follow; release with cli_swaps_close(). */
struct cli_swaps {
    struct cli_model *model;
    char own_id[BASE_HEX], own_sha256[BASE_HEX]; /* the model's while nothing is swapped */
    struct cli_swap *items;                      /* [n] by the tensors' names */
    size_t n, capacity;
};

/** What is wanted: a tensor of a file, or (file NULL) the model's own again. Borrowed. */
struct cli_swap_wanted {
    const char *tensor, *file;
};

/**
 * Swap n tensors, all or none. Files are opened anew, each once, and stay open while a tensor of
 * theirs is used. cancel: ends it between two tensors. The model's id becomes the SHA-256 of its
 * own one and, for each tensor that is swapped, by name, of the name, a zero byte and the digest of
 * the bytes. wrong: which of them failed; n: none. Cost: reads these. Fails: STATUS_USAGE (a name
 * that the model or the file has not), as gguf_open, model_swap; STATUS_CANCELLED.
 */
enum status cli_swaps_apply(struct cli_swaps *swaps, const struct cli_swap_wanted *wanted, size_t n,
                            size_t *wrong, const atomic_bool *cancel, struct status_why *why);
/** Restore all. The model must be open still, if there are any. */
void cli_swaps_close(struct cli_swaps *swaps);

/** The list `swapped` of an object, if there are any. */
void cli_swaps_add_json(struct base_json *json, cJSON *o, const struct cli_swaps *swaps);

#endif
