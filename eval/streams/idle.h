/**
 * Models of a run whose scores are not wanted any more: neither their layers nor their heads are
 * computed from the next batch on, and their scores are 0.
 */
#ifndef EVAL_STREAMS_IDLE_H
#define EVAL_STREAMS_IDLE_H

#include <stdatomic.h>

#include "eval/scorer/streams.h"

/** Everything is borrowed. One flag for each pass: of the run's model, then of its candidates. */
struct eval_idle {
    const atomic_bool *flags; /* set while the run goes on, by whoever learns it; never that of a
                                 model that the others are compared with */
};

/** The source with these flags, which must outlive it. */
struct eval_stream_source eval_idle_source(struct eval_idle *idle);

#endif
