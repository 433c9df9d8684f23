/**
 * Models that are made for a sweep and deleted after it: the base in other types, by the
 * llama-quantize of the user.
 */
#ifndef CLI_SWEEP_DONORS_H
#define CLI_SWEEP_DONORS_H

#include <limits.h>

#include "cli/options/args.h"

/** Zero-initialise; release with cli_donors_remove. */
struct cli_donors {
    char folder[PATH_MAX]; /* a temporary one; "": there is none */
    struct cli_list paths; /* of the files that were made in it */
};

/**
 * Make a file of each type, one after the other. quantizer: the program, looked for as a shell
 * does, and options for it, with blanks between. base: the model that they are made of. What the
 * program prints is shown where it fails.
 * Fails: STATUS_USAGE (a type that is no name, one of them twice, several processes), STATUS_IO
 *        (no room, no folder, the program cannot be run or fails), STATUS_CANCELLED, STATUS_MEMORY.
 */
enum status cli_donors_make(struct cli_donors *out, const struct cli_list *types,
                            const char *quantizer, const char *base, struct status_why *why);

/** Delete what was made. A zero-initialised object is allowed. */
void cli_donors_remove(struct cli_donors *donors);

#endif
