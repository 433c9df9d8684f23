/** Ctrl-C: the first asks for an orderly end, the second kills. */
#ifndef CLI_INTERRUPT_H
#define CLI_INTERRUPT_H

#include <stdatomic.h>

/**
 * From now on the first SIGINT or SIGTERM sets the returned flag, and a second one ends the
 * process at once with the exit code of an interruption. A closed pipe on standard output no longer
 * kills: the write fails instead.
 */
const atomic_bool *cli_interrupt_catch(void);

#endif
