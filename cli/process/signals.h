/** Signals that tell the program to end: SIGINT (Ctrl-C), SIGTERM, SIGHUP (the terminal is closed).
 */
#ifndef CLI_PROCESS_SIGNALS_H
#define CLI_PROCESS_SIGNALS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

/**
 * While there is nothing that could be ended in an orderly manner: each of them ends the process
 * with a sentence and the exit code of an interruption. A file that grows beyond a limit
 * (ulimit -f) no longer kills: the write fails instead.
 * One that was ignored when the process started stays ignored, here and below.
 */
void cli_interrupt_begin(void);

/**
 * From now on the first of them sets the returned flag, and a second one ends the process at once
 * with the exit code of an interruption. A closed pipe on standard output no longer kills: the
 * write fails instead.
 * Half a second after the first signal an opening or a write that waits for the other end of a pipe
 * begins to fail (EINTR), and standard streams that nobody reads are given up.
 */
const atomic_bool *cli_interrupt_catch(void);

/** The next but the first of them kills this group of processes instead, once. 0: there is none. */
void cli_interrupt_hand_on(pid_t group);

/**
 * For a program that stays: hold them back, in this thread and those that it starts from now on, so
 * that cli_signal_next sees them. A closed connection no longer kills.
 */
void cli_signals_hold(void);
/** Wait for one of them, so many seconds at most. Returns its number; 0: none came. */
int cli_signal_next(double seconds);
/** Let them do again what they did before, to this thread. */
void cli_signals_release(void);

/** Another process tells people of the interruption, as rank 0 does for all ranks. */
void cli_interrupt_tell_elsewhere(void);
bool cli_interrupt_is_told_elsewhere(void);

/** Whether that flag is set: a failure of input or output may then be due to it. */
bool cli_interrupted(void);

/** Print on standard error from a handler of a signal, unless that would wait for a reader. */
void cli_signal_print(const char *text);

#endif
