/** Models that stand without an option, as a pattern of the shell names them. */
#ifndef CLI_INPUT_MODELS_H
#define CLI_INPUT_MODELS_H

#include "cli/options/args.h"

/**
 * Leave out what a pattern names beside the models that are meant, with a note for each kind: a
 * file that is the base (NULL: there is none), unless it is the only one; further parts of a split
 * model; a file for the second time.
 * Returns how many are left. They come first, in their order; the others stay in the list after
 * them, whose n is unchanged.
 */
size_t cli_models_once(const struct cli_list *models, const char *base);

#endif
