/** llama.cpp's configuration files, which its programs read before the environment. */
#ifndef CLI_PERPLEXITY_CONFIG_H
#define CLI_PERPLEXITY_CONFIG_H

#include "cli/options/args.h"

/** Whether the program was called by a name that begins with llama-perplexity. */
bool cli_called_as_peer(const struct cli_args *args);

/**
 * Where it was, fill the settings of assay perplexity from /etc/llama.cpp/config.ini and
 * llama.cpp/config.ini in $XDG_CONFIG_HOME (else ~/.config), if they exist: with the options that
 * llama-perplexity and this program have both. A note names each of them, and each key that is not
 * used. Texts live until the program ends.
 * Fails: STATUS_USAGE, STATUS_FORMAT, STATUS_IO, STATUS_MEMORY; the sentence names the file.
 */
enum status cli_config_apply(void *settings, struct cli_args *args, struct status_why *why);

/**
 * Where it was not: a note about keys that would change a number of llama-perplexity and for which
 * neither an option nor a variable is given. A file that cannot be read is none.
 */
void cli_config_note(struct cli_args *args);

#endif
