/**
 * What enters the layers of a run's models, kept from one run to the next (--cache): a run begins
 * with the first layer that has changed. With eval/streams/caches.h.
 */
#ifndef CLI_WATCH_CACHES_H
#define CLI_WATCH_CACHES_H

#include "cli/evaluate.h"

/** That --cache-file, if there is one, can be created. Fails: STATUS_USAGE. */
enum status cli_caches_check(const struct cli_watch_settings *settings, struct status_why *why);
/**
 * For the run that is prepared: caches for its models, which share the size that was asked for, or
 * those of the runs before.   Fails: STATUS_MEMORY, STATUS_IO.
 */
enum status cli_caches_open(struct cli_evaluation *e, struct status_why *why);
/** After a run that failed, and at the end. */
void cli_caches_drop(struct cli_evaluation *e);

#endif
