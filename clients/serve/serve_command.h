/** assay serve: an evaluator that stays, and answers HTTP. docs/serve.md has the requests. */
#ifndef SERVE_SERVE_COMMAND_H
#define SERVE_SERVE_COMMAND_H

#include "cli/options/args.h"

extern const struct cli_command serve_command;

#endif
