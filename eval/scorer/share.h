/** The layers of each model divided among processes: the one with the first embeds, the one with
 * the last scores. */
#ifndef EVAL_SCORER_SHARE_H
#define EVAL_SCORER_SHARE_H

#include "eval/cluster/hop.h"
#include "model/split.h"

/** Share i of n; n 0 or 1: all layers are this process's. */
struct eval_share {
    size_t i, n;
    struct eval_hop *in;  /* what enters its layers; NULL: it embeds */
    struct eval_hop *out; /* where it goes from there; NULL: it scores */
};

/** Whether other processes have layers, too. */
static inline bool eval_share_splits(const struct eval_share *share)
{
    return share->n > 1;
}

/** Whether the rows of the last layer come to be here. */
static inline bool eval_share_scores(const struct eval_share *share)
{
    return share->n <= 1 || share->i + 1 == share->n;
}

/** A model's layers in the share. Fails: as model_split. */
static inline enum status eval_share_layers(const struct eval_share *share, const struct model *m,
                                            struct model_layer_range *out, struct status_why *why)
{
    return model_split(m, share->n ? share->n : 1, share->i, out, why);
}

#endif
