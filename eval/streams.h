/** What enters the layers of a model beside the embedding. */
#ifndef EVAL_STREAMS_H
#define EVAL_STREAMS_H

#include "eval/scorer/streams.h"
#include "eval/streams/cache.h"
#include "eval/streams/caches.h"
#include "eval/streams/idle.h"
#include "eval/streams/variants.h"

#endif
