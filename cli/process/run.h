/** From a command line to an exit code. */
#ifndef CLI_PROCESS_RUN_H
#define CLI_PROCESS_RUN_H

#include <stdbool.h>

#include "cli/options/args.h"

/** Exit codes, the same for every command; docs/assay.1 lists them. */
enum {
    CLI_EXIT_DONE = 0,
    CLI_EXIT_FAILED = 1, /* the evaluation failed, or its result is not finite or above a limit */
    CLI_EXIT_USAGE = 2,  /* bad usage or input, output that cannot be written */
    CLI_EXIT_DEVICE = 3,
    CLI_EXIT_INTERRUPTED = 130
};

/**
 * Run a command from its arguments (argv[0] is its name) to its exit code: parse them, print
 * the help where it is asked for and one line where options are ignored, do the work, and
 * report a failure.
 */
int cli_run(const struct cli_command *command, int argc, char **argv);

/** Whether what is written to standard error shows where standard output does. */
bool cli_same_stream(void);

/** Flush standard output in the course of a run; a failure is remembered for cli_end(). */
void cli_flush(void);

/**
 * Flush standard output. Returns exit_code, or CLI_EXIT_USAGE (and a line on standard
 * error) where it was CLI_EXIT_DONE but the output could not be written.
 */
int cli_end(int exit_code);

#endif
