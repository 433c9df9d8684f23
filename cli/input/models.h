/** Models that stand without an option, as a pattern of the shell names them. */
#ifndef CLI_INPUT_MODELS_H
#define CLI_INPUT_MODELS_H

#include "cli/options/common.h"

/**
 * Leave out what a pattern names beside the models that are meant, with a note for each kind: a
 * file that is the base (NULL: there is none), unless it is the only one; further parts of a split
 * model; a file for the second time.
 * Returns how many are left. They come first, in their order; the others stay in the list after
 * them, whose n is unchanged.
 */
size_t cli_models_once(const struct cli_list *models, const char *base);

/**
 * The same where n_bare of a command's models stand without an option; where all do, also GGUF
 * files that are no models (importance matrices, adapters, vocabularies) or not whole, as one that
 * is being downloaded, each with a note; settings->left_out says so, too. Where no model would be
 * left, all files are: opening them says what they are.
 */
size_t cli_models_chosen(const struct cli_list *models, size_t n_bare, const char *base,
                         struct cli_evaluate_settings *settings);

#endif
