/**
 * The block that predicts the token after the next (nextn, MTP), evaluated after the layers of each
 * batch, so that the inputs of its products count as well. Each sequence of n tokens gives it n - 1
 * pairs of a token and the row before it. Which rows count the tokens' marks say.
 */
#ifndef IMATRIX_NEXTN_H
#define IMATRIX_NEXTN_H

#include "clients/imatrix/collect.h"
#include "eval/streams.h"
#include "eval/units.h"

/** Everything is borrowed. */
struct imat_nextn {
    const struct model *model;        /* opened with its block */
    const struct eval_units *units;   /* of whole sequences; when a scorer opens, their `most` is
                                         known */
    struct imat_collector *collector; /* attached to the backends */
};

/** The source of streams that evaluates it, of an object that must outlive it. */
struct eval_stream_source imat_nextn_source(struct imat_nextn *nextn);

#endif
