/** Tensors of a model's file that a run over it makes no entry for. */
#ifndef IMATRIX_MISSING_H
#define IMATRIX_MISSING_H

#include "model/model.h"

/** What llama-quantize (October 2026) does about a tensor without an entry. */
enum imat_treatment {
    IMAT_STOPPED, /* it stops, where the tensor is to become a type that wants one */
    IMAT_ALIKE,   /* it weighs all columns alike */
    IMAT_KEPT     /* it leaves the tensor as it is, with an entry, too */
};

/** Types that want an entry; the last one only in a file of the name. */
#define IMAT_TYPES_THAT_STOP "IQ1_S, IQ1_M, IQ2_XXS, IQ2_XS, IQ2_S, IQ3_XXS or Q2_K of Q2_K_S"

struct imat_missing {
    const char *name; /* the file's */
    enum imat_treatment treatment;
};

/**
 * List the file's matrices without an entry, in the file's order; vectors are never quantised.
 * outputs: the head gets one, as for imat_collector_open. *out: free() releases it.
 * Fails: STATUS_MEMORY.
 */
enum status imat_missing_list(const struct model *m, bool outputs, struct imat_missing **out,
                              size_t *n, struct status_why *why);

#endif
