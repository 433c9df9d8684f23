/** How wide lines may be. */
#ifndef CLI_OPTIONS_WIDTH_H
#define CLI_OPTIONS_WIDTH_H

#include <stddef.h>

enum { CLI_NARROWEST = 40, CLI_USUAL_WIDTH = 80, CLI_WIDEST = 1000 };

/**
 * Columns for what is printed to a descriptor: COLUMNS where it is a number, else those of the
 * terminal, else 80, which is what a pipe or a file gets; CLI_NARROWEST to CLI_WIDEST.
 */
size_t cli_width(int descriptor);

#endif
