/** The command line as the host of evaluations: lines, progress, signals, several processes. */
#ifndef CLI_COMMAND_LINE_H
#define CLI_COMMAND_LINE_H

#include "cli/host.h"

/** Its functions, for hosts that differ from it in some of them. */
extern const struct cli_host cli_command_line;

#endif
