/** An evaluation that several processes share: what they agree about, and what each of them does.
 */
#ifndef CLI_RANKS_H
#define CLI_RANKS_H

#include "cli/evaluate.h"

/**
 * What a journal belongs to, and ranks have to have in common: this version of the program, and
 * everything that determines numbers. with_split: and how layers are divided, which changes none.
 * out: a JSON object; cJSON_free() it.   Fails: STATUS_MEMORY.
 */
enum status cli_ranks_settings(char **out, const struct cli_evaluation *e, bool with_split,
                               struct status_why *why);
/**
 * Take over how many ranks there are, and which share of the layers is this one's.
 * Fails: STATUS_USAGE (of a run whose layers cannot be divided).
 */
enum status cli_ranks_divide(struct cli_evaluation *e, struct status_why *why);
/** Rank 0: that the other ranks have opened the same. Fails: as eval_team_agree. */
enum status cli_ranks_agree(const struct cli_evaluation *e, struct status_why *why);
/** Any other rank evaluates what it is sent. What fails is told to rank 0, which says it. */
enum status cli_ranks_serve(struct cli_evaluation *e, struct status_why *why);

#endif
