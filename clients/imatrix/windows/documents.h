/**
 * Windows of documents side by side: no token is evaluated twice, so that each row counts once.
 */
#ifndef IMATRIX_DOCUMENTS_H
#define IMATRIX_DOCUMENTS_H

#include "clients/imatrix/imatrix.h"
#include "eval/input.h"

/**
 * Lay windows of n_ctx tokens over each document, the last one of what is left. BOS takes the place
 * of the first token of a window that does not begin its document, if the vocabulary asks for BOS.
 * A token is scored where the documents say so, from the token before it; so a document's first
 * never is, and a window may score nothing.
 * masked: a window ends with its last position that scores a token; one that has none is left out.
 * plan: released with eval_plan_free.   Fails: STATUS_USAGE (as eval_plan_make; no window is left),
 * STATUS_MEMORY.
 */
enum status imat_plan_documents(struct eval_plan *plan, const struct eval_plan_options *options,
                                const struct eval_documents *d, bool masked,
                                struct status_why *why);

/** Rows of experts are told apart by so many categories at most. */
enum { IMAT_MOST_CATEGORIES = UINT8_MAX };

/** Categories of the documents, and one more if some have none; 0: no document has one. */
size_t imat_n_categories(const struct eval_documents *d);
/** A document's, from 0; those without one have the last. */
size_t imat_category_of(const struct eval_documents *d, size_t document);
/** Name them in a matrix that has none yet. Fails: STATUS_MEMORY. */
enum status imat_name_categories(struct imat_matrix *m, const struct eval_documents *d,
                                 struct status_why *why);

#endif
