/** Matrices of a model's file that have no entry: which to expect before a run, and which after it.
 */
#ifndef IMATRIX_MISSING_H
#define IMATRIX_MISSING_H

#include "clients/imatrix/imatrix.h"
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

/** They are in the file's order; vectors are never quantised. free(items). */
struct imat_missing_list {
    struct imat_missing *items;
    size_t n;
};

/**
 * Those that no layer multiplies rows of tokens with, as far as the model's form says.
 * outputs: the head gets an entry, as for imat_collector_open.   Fails: STATUS_MEMORY.
 */
enum status imat_missing_foresee(struct imat_missing_list *out, const struct model *m, bool outputs,
                                 struct status_why *why);
/** Those that `entries`, ascending by name, are without.   Fails: STATUS_MEMORY. */
enum status imat_missing_find(struct imat_missing_list *out, const struct model *m,
                              const struct imat_matrix *entries, struct status_why *why);
/** Whether a list of the same model has it, too. */
bool imat_missing_has(const struct imat_missing_list *list, const struct imat_missing *missing);

#endif
