/** Ctrl-C: the first asks for an orderly end, the second kills. */
#ifndef CLI_SESSION_INTERRUPT_H
#define CLI_SESSION_INTERRUPT_H

#include <stdatomic.h>

/**
 * While nothing is under way that could be ended in an orderly manner: SIGINT and SIGTERM end the
 * process with a sentence and the exit code of an interruption. A file that grows beyond a
 * limit (ulimit -f) no longer kills: the write fails instead.
 */
void cli_interrupt_begin(void);

/**
 * From now on the first SIGINT or SIGTERM sets the returned flag, and a second one ends the
 * process at once with the exit code of an interruption. A closed pipe on standard output no longer
 * kills: the write fails instead.
 */
const atomic_bool *cli_interrupt_catch(void);

#endif
