/** What every command needs: exit codes, messages, the beginning and the end of a run. */
#ifndef CLI_RUN_H
#define CLI_RUN_H

#include <stdbool.h>

#include "cli/args.h"

/** Exit codes, the same for every command; docs/assay.1 lists them. */
enum {
    CLI_EXIT_DONE = 0,
    CLI_EXIT_FAILED = 1, /* the evaluation failed, or its result is not finite */
    CLI_EXIT_USAGE = 2,  /* bad usage or input, output that cannot be written */
    CLI_EXIT_DEVICE = 3,
    CLI_EXIT_INTERRUPTED = 130
};

/** The exit code that a status leads to. */
int cli_exit_code(enum status status);

/** Print "assay: <sentence>" to standard error and return the exit code of the status. */
int cli_fail(enum status status, const struct status_why *why);

/**
 * Parse the arguments; print the help where it is asked for, one line where options are
 * ignored, one where they are wrong.
 * Returns true if the command shall go on; else *exit_code is what it shall return.
 */
bool cli_begin(const struct cli_command *command, int argc, char **argv, void *settings,
               struct cli_args *args, int *exit_code);

/** Flush standard output in the course of a run; a failure is remembered for cli_end(). */
void cli_flush(void);

/**
 * Flush standard output. Returns exit_code, or CLI_EXIT_USAGE (and a line on standard
 * error) where it was CLI_EXIT_DONE but the output could not be written.
 */
int cli_end(int exit_code);

#endif
