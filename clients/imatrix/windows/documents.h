/** The categories of documents, by which rows of experts are told apart. */
#ifndef IMATRIX_DOCUMENTS_H
#define IMATRIX_DOCUMENTS_H

#include "clients/imatrix/imatrix.h"
#include "eval/input.h"

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
