/** An evaluation that several processes share: what they agree about, and what each of them does.
 */
#ifndef CLI_RANKS_H
#define CLI_RANKS_H

#include "cli/evaluate.h"

/**
 * Rank 0, before a run: that the other ranks have opened the same, which are then its workers.
 * Fails: STATUS_USAGE (also of a run whose layers cannot be divided), as cluster_team_agree.
 */
enum status cli_ranks_ready(struct cli_evaluation *e, struct status_why *why);
/** Rank 0: there will be no run; where there was one, or no other rank is, nothing happens. */
void cli_ranks_end(enum status status);
/** Any other rank evaluates what it is sent. What fails is told to rank 0, which says it. */
enum status cli_ranks_serve(struct cli_evaluation *e, struct status_why *why);

#endif
