/** What a shell offers while a command line is typed; completions/ asks for it. */
#ifndef CLI_OPTIONS_COMPLETE_H
#define CLI_OPTIONS_COMPLETE_H

#include "cli/options/args.h"

/** The program's commands; `assumed` is that of options without a command. */
struct cli_command_list {
    const struct cli_command *const *items;
    size_t n;
    const struct cli_command *assumed;
};

/**
 * Print what the last of `words` can become, a line each: a word, a tab, what it is. The line
 * ":file" says that it can be a file. words: those after the program's name, the last one as far
 * as it is typed, perhaps ""; n: how many.
 */
void cli_complete(const struct cli_command_list *commands, char **words, size_t n);

#endif
