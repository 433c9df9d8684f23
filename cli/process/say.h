/** What the program says of its work, on standard error. --quiet leaves nothing but errors. */
#ifndef CLI_PROCESS_SAY_H
#define CLI_PROCESS_SAY_H

#include <stdbool.h>

/** Whether nothing is said from now on. */
void cli_be_quiet(bool quiet);
bool cli_is_quiet(void);

/**
 * A line on standard error, unless nothing is said. format: of printf, with the newline; the line
 * is cut at 2047 bytes, and is made printable (base/text/escape.h), whatever a name in it holds.
 */
__attribute__((format(printf, 1, 2))) void cli_say(const char *format, ...);
/** A line about an error, which is always said. */
__attribute__((format(printf, 1, 2))) void cli_complain(const char *format, ...);

/** Say each of the lines as a note. */
void cli_print_notes(const char *lines);
/** Say those of the lines that this function has not said before: notes that many files share. */
void cli_print_new_notes(const char *lines);

#endif
