/** How far two importance matrices are apart. */
#ifndef IMATRIX_COMPARE_H
#define IMATRIX_COMPARE_H

#include "clients/imatrix/imatrix.h"

/** A matrix that both have, in the same shape. */
struct imat_difference {
    const struct imat_entry *a, *b;
    bool same;     /* sums and counts, to the bit; of sums that one file has as floats, these */
    double cosine; /* of the means; NaN where one is 0 everywhere */
    double ratio;  /* the largest of a_j / b_j and b_j / a_j; infinite where one alone is 0 */
    uint64_t at_matrix; /* where the ratio is: matrix, column */
    uint64_t at_column;
    double rows[2];     /* of all its matrices */
    uint64_t n_counts;  /* matrices with other counts */
    uint64_t n_only[2]; /* matrices with rows in A only, in B only */
};

/** Zero-initialise; release with imat_comparison_free. */
struct imat_comparison {
    struct imat_matrix sides[2];   /* the caller's to fill; released with the rest */
    struct imat_difference *items; /* ascending by name */
    size_t n;
    size_t n_only[2]; /* names that A alone has, B alone */
    bool same;        /* all entries are the same, and none is in one only */
    bool as_floats;   /* one side has floats only, so sums were compared as floats */
    const struct imat_difference *worst; /* least cosine, then largest ratio; NULL: none differs */
};

/**
 * Compare the sides. A side of the older format takes the other's shapes.
 * Fails: STATUS_FORMAT (a name in both with another number of columns or matrices), STATUS_MEMORY.
 */
enum status imat_compare(struct imat_comparison *c, struct status_why *why);
/** Whether x is further apart than y. What has no cosine is the furthest. */
bool imat_is_worse(const struct imat_difference *x, const struct imat_difference *y);

void imat_comparison_free(struct imat_comparison *c);

#endif
