/** What the program says of its work, on standard error. --quiet leaves nothing but errors. */
#ifndef CLI_OUTPUT_SAY_H
#define CLI_OUTPUT_SAY_H

#include <stdbool.h>

/** Whether nothing is said from now on. */
void cli_be_quiet(bool quiet);
bool cli_is_quiet(void);

/** fprintf to standard error, unless nothing is said. Errors are printed without it. */
__attribute__((format(printf, 1, 2))) void cli_say(const char *format, ...);

/** Say each of the lines as a note. */
void cli_print_notes(const char *lines);

#endif
