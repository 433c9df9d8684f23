/** Ids come from a vocabulary that may be longer than the matrices of a broken file. */
#ifndef EVAL_UNITS_IDS_H
#define EVAL_UNITS_IDS_H

#include "model/model.h"

/** Refuse ids that are not rows of the model's embedding. Fails: STATUS_FORMAT. */
static inline enum status eval_check_ids(const struct model *model, const int32_t *ids, size_t n,
                                         struct status_why *why)
{
    size_t n_vocab = model_hparams(model)->n_vocab;
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || (size_t)ids[i] >= n_vocab)
            return status_fail(why, STATUS_FORMAT,
                               "%s: token %zu of the text has the id %d; expected ids below %zu, "
                               "the rows of the embedding",
                               gguf_path(model_file(model)), i, ids[i], n_vocab);
    return STATUS_OK;
}

#endif
