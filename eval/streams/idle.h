/**
 * Models of a run whose scores are not wanted any more: their layers are not computed from the next
 * batch on. Their heads are, of zeros; what is said of them has no meaning.
 */
#ifndef EVAL_STREAMS_IDLE_H
#define EVAL_STREAMS_IDLE_H

#include <stdatomic.h>

#include "eval/scorer/streams.h"

/** Everything is borrowed. One flag for each pass: of the run's model, then of its candidates. */
struct eval_idle {
    const atomic_bool *flags; /* set while the run goes on, by whoever learns it */
};

/** The source with these flags, which must outlive it. */
struct eval_stream_source eval_idle_source(struct eval_idle *idle);

#endif
