/** Arguments that stand without an option: what they are, and which option was meant. */
#ifndef CLI_OPTIONS_BARE_H
#define CLI_OPTIONS_BARE_H

#include <stdbool.h>

#include "cli/options/args.h"

/** Whether an argument is meant as a model: it names a GGUF file or a published folder, or ends as
 * names of GGUF files do. */
bool cli_bare_is_model(const char *argument);

/**
 * The option of a command that a file was probably meant for, by what the file is, or by its name
 * where it does not exist. NULL: nothing can be said.
 */
const char *cli_bare_option(const struct cli_command *command, const char *argument);

#endif
