/** Another program that works for this one, and never outlives it. */
#ifndef CLI_PROCESS_PROGRAM_H
#define CLI_PROCESS_PROGRAM_H

#include "base/status.h"

/**
 * Run a program until its end, with nothing to read, and what it prints in a file.
 * words: its name, looked for as a shell does, and its arguments; then NULL.   log: made anew.
 * *ended: its status, as waitpid has it.
 * It has a process group of its own, which ends with it. An interruption tells that to end
 * (SIGTERM); what has not ended two seconds later, or at a second interruption, is killed.
 * Fails: STATUS_IO (it cannot be run, or what became of it is not known), STATUS_CANCELLED,
 *        STATUS_MEMORY.
 */
enum status cli_program_run(int *ended, char *const *words, const char *log,
                            struct status_why *why);

#endif
