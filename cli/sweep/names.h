/** Which tensors go together in a sweep: names of groups, from names of tensors. */
#ifndef CLI_SWEEP_NAMES_H
#define CLI_SWEEP_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "cli/options/args.h"

/** Room for the name of a tensor or a group; GGUF's have 64 bytes at most. */
enum { CLI_SWEEP_NAME_BYTES = 256 };

/** In the order of the words of --by. */
enum cli_sweep_by { CLI_SWEEP_BY_TENSOR, CLI_SWEEP_BY_LAYER, CLI_SWEEP_BY_ROLE };

/** The layer of "blk.N.…" and what follows it, without ".weight"; no layer: SIZE_MAX. */
struct cli_sweep_place {
    size_t layer;
    char role[CLI_SWEEP_NAME_BYTES];
};
struct cli_sweep_place cli_sweep_place(const char *tensor);

struct cli_sweep_names;

/**
 * patterns: of --group; where there are any, the first that matches a tensor's name gives its
 * group's: what its parentheses matched, or without parentheses the pattern itself.
 * Fails: STATUS_USAGE (a pattern that is not valid), STATUS_MEMORY.
 */
enum status cli_sweep_names_open(struct cli_sweep_names **out, enum cli_sweep_by by,
                                 const struct cli_list *patterns, struct status_why *why);
/** NULL is allowed. */
void cli_sweep_names_close(struct cli_sweep_names *names);

/**
 * The name of a tensor's group; false where it is in none.
 * Fails: STATUS_USAGE (a pattern that takes too long on it).
 */
enum status cli_sweep_name(const struct cli_sweep_names *names, const char *tensor,
                           char group[CLI_SWEEP_NAME_BYTES], bool *in_group,
                           struct status_why *why);

#endif
