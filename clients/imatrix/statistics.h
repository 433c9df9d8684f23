/**
 * Statistics of importance matrices, over the means of squares a_j = sum_j / count of all columns
 * of all matrices of an entry that have rows. In double precision; deviations in a second pass.
 */
#ifndef IMATRIX_STATISTICS_H
#define IMATRIX_STATISTICS_H

#include "clients/imatrix/imatrix.h"

struct imat_statistics {
    uint64_t n; /* how many a_j; 0: the rest is 0, too */
    double total, min, max, mean;
    double deviation;    /* of the population */
    double active;       /* share of a_j > 1e-5 */
    double entropy;      /* in bits, of a_j / total; 0 where the total is */
    double entropy_norm; /* divided by log2 n; 0 where n is 1 */
    double outlying;     /* share of a_j that are more than a deviation above the mean */
};

struct imat_statistics imat_statistics_of(const struct imat_entry *e);

/** Sum j of matrix k over its count; 0 where it has no rows. */
double imat_mean_at(const struct imat_entry *e, uint64_t k, uint64_t j);

/**
 * The cosine of two entries: of the means, over the matrices that have rows in both, or of the
 * sums. NaN where shapes differ, or one of them is 0 everywhere.
 */
double imat_cosine(const struct imat_entry *a, const struct imat_entry *b, bool of_sums);

/** The number of the block in "blk.N."; -1: none. The rest of the name is at *rest. */
int64_t imat_block_of(const char *name, const char **rest);
/** The same matrix one block earlier; NULL: there is none. */
const struct imat_entry *imat_one_earlier(const struct imat_matrix *m, const struct imat_entry *e);
/** By name; NULL where there is none. */
const struct imat_entry *imat_find(const struct imat_matrix *m, const char *name);

/** How many rows a matrix of a stack would have if all had as many. */
double imat_even_share(const struct imat_entry *e);
/** Whether a matrix of a stack has fewer rows than one in a hundred of the even share. */
bool imat_is_rare(const struct imat_entry *e, uint64_t k);

/** Whether an entry is of a mixture's experts: "blk.0.ffn_up_exps.weight". */
bool imat_is_experts(const struct imat_entry *e);
/** An entry of the rows of one category alone: borrowed counts, no sums. */
struct imat_entry imat_of_category(const struct imat_entry *e, size_t category);
/** Whether an entry of the same block that comes before entry i has the same counts. */
bool imat_repeats(const struct imat_matrix *m, size_t i);

/** How rows fell on the matrices of a stack. */
struct imat_use {
    double n_rows; /* of all together */
    uint64_t least, most;
    uint64_t n_none, n_few; /* matrices without rows; others that are rare */
    double entropy;         /* of the shares of rows, in bits; 0 where there are no rows */
    double entropy_norm;    /* divided by log2 of the number of matrices; 0 where that is 1 */
};
struct imat_use imat_use_of(const struct imat_entry *e);
/** Half the sum, over matrices, of |the share of a's rows - that of b's|: 0 to 1. 0 where one of
 * them has no rows. Both have as many matrices. */
double imat_use_differs(const struct imat_entry *a, const struct imat_entry *b);

#endif
