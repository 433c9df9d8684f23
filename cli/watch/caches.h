/**
 * What enters the layers of a run's models, kept from one run to the next (--cache): a run begins
 * with the first layer that has changed. With eval/streams/caches.h.
 */
#ifndef CLI_WATCH_CACHES_H
#define CLI_WATCH_CACHES_H

#include "cli/evaluate.h"
#include "eval/streams.h"

/** Zero-initialise. */
struct cli_caches {
    const struct cli_evaluation *e;
    struct eval_cache **items; /* of the model and its candidates; NULL: not made yet */
    struct eval_caches kept;   /* the same */
    struct eval_stream_source source;
};

/** That --cache-file, if there is one, can be created. Fails: STATUS_USAGE. */
enum status cli_caches_check(const struct cli_watch_settings *settings, struct status_why *why);
/**
 * Let the next run's models use the caches of the runs before, if --cache is given; the run makes
 * them if there are none. They share the size that was asked for.
 */
void cli_caches_use(struct cli_caches *caches, struct cli_evaluation *e);
/** After a run that failed, and at the end. */
void cli_caches_drop(struct cli_caches *caches);

#endif
