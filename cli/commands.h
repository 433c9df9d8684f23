/** The commands of the program; each is in a room named for it, or for what it is about. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "cli/options/args.h"

extern const struct cli_command cli_command_best;
extern const struct cli_command cli_command_card;
extern const struct cli_command cli_command_check;
extern const struct cli_command cli_command_compare;
extern const struct cli_command cli_command_draft;
extern const struct cli_command cli_command_dump;
extern const struct cli_command cli_command_explain;
extern const struct cli_command cli_command_imatrix;
extern const struct cli_command cli_command_info;
extern const struct cli_command cli_command_kld;
extern const struct cli_command cli_command_merge;
extern const struct cli_command cli_command_mix;
extern const struct cli_command cli_command_perplexity;
extern const struct cli_command cli_command_plan;
extern const struct cli_command cli_command_recipe;
extern const struct cli_command cli_command_record;
extern const struct cli_command cli_command_report;
extern const struct cli_command cli_command_score;
extern const struct cli_command cli_command_sweep;
extern const struct cli_command cli_command_table;
extern const struct cli_command cli_command_tokenize;
extern const struct cli_command cli_command_trace;
extern const struct cli_command cli_command_version;

#endif
