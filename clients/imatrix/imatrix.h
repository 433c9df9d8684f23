/**
 * Importance matrices: for each weight matrix, and for each expert of one, the sum over the rows of
 * its input of x_j^2 for each column j, and the number of rows.
 *
 * Sums are whole numbers of IMAT_QUANTUM, so they are the same in whatever order rows are added,
 * and adding up parts gives what one run would have given. A square is rounded to the nearest
 * number of quanta (of two, the even one) before it is added.
 */
#ifndef IMATRIX_IMATRIX_H
#define IMATRIX_IMATRIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/** 2^-64: squares of inputs above 1e-7 keep 8 digits, and sums up to 2^63 have room. */
#define IMAT_QUANTUM 0x1p-64

/** A sum of squares: whole + part * IMAT_QUANTUM. Below 2^63; never negative. */
struct imat_sum {
    uint64_t part, whole;
};

/** Categories that a file names at most. */
enum { IMAT_MOST_NAMES = 4096 };

/** One weight matrix, or a stack of them (experts, heads). */
struct imat_entry {
    char *name;            /* of the tensor, with ".weight" */
    uint64_t n_columns;    /* inputs of a matrix */
    uint64_t n_matrices;   /* 1 where it is no stack */
    struct imat_sum *sums; /* [n_matrices, n_columns], where `exact`; else NULL */
    float *rounded;        /* [n_matrices, n_columns], where not `exact`: as a file has them */
    uint64_t *counts;      /* [n_matrices]: rows */
    uint64_t *use;         /* [n_categories, n_matrices]: the same by category, of experts where the
                              matrix has categories; else NULL */
};

/** Windows [begin, end) of a text that are in the sums. */
struct imat_range {
    size_t text; /* index in `texts` */
    uint64_t begin, end;
};

/** Zero-initialise; release with imat_free. */
struct imat_matrix {
    struct imat_entry *entries; /* ascending by name, bytewise; names differ */
    size_t n;
    bool exact;       /* sums are what was added; else they were rounded to float32 */
    bool counts_lost; /* of the older format: counts are of chunks, the same for all experts */
    char **datasets;  /* names of the texts, in order: those of files, without their folders */
    size_t n_datasets;
    uint64_t chunk_size, n_chunks; /* tokens; as llama-imatrix counts them */

    /* What follows may be absent; only `exact` matrices have it in their files. Parts of one run
       have the same texts and the same model, and other ranges. */
    char **texts; /* [n_datasets], or NULL: of each text an id of its windows, such as a hash: equal
                     ids have the same windows. Several datasets may share one id */
    char **hashes; /* [n_datasets], or NULL: of each text the SHA-256 of its bytes, in digits */
    struct imat_range *ranges; /* ascending by text, then begin; those that touch are one */
    size_t n_ranges;           /* 0: nobody knows which windows they are */
    char *model;               /* an id of what computed; NULL: unknown, or several */
    char **categories;         /* of documents, for `use`; "": of those without one. Names differ */
    size_t n_categories;       /* 0: rows of experts were not told apart */
};

void imat_free(struct imat_matrix *m);
/** Round the sums of an exact matrix, which then has no others. Fails: STATUS_MEMORY. */
enum status imat_round(struct imat_matrix *m, struct status_why *why);
/** Order entries by name. Fails: STATUS_FORMAT (a name twice). */
enum status imat_sort(struct imat_matrix *m, struct status_why *why);

#endif
