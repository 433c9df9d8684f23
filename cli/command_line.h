/** The command line as the host of evaluations: lines, progress, signals, several processes. */
#ifndef CLI_COMMAND_LINE_H
#define CLI_COMMAND_LINE_H

#include "cli/host.h"

/** Its functions, for hosts that differ from it in some of them. */
extern const struct cli_host cli_command_line;

/** Open devices and all that is evaluated, after cli_evaluation_begin. Fails: as both. */
enum status cli_command_line_open(struct cli_evaluation *e, struct status_why *why);
/** Models live on the backends, which are closed last. */
void cli_command_line_close(struct cli_evaluation *e);

#endif
