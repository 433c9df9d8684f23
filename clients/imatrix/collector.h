/** What a collector is made of. For imatrix/ only. */
#ifndef IMATRIX_COLLECTOR_H
#define IMATRIX_COLLECTOR_H

#include <pthread.h>
#include <stdatomic.h>

#include "clients/imatrix/collect.h"
#include "clients/imatrix/squares.h"
#include "kernels/observer.h"

/** Where the first row of a matrix lies. */
struct imat_place {
    const void *data;
    const int32_t *rows; /* of a view: as struct kern_weight has them */
    uint32_t entry, matrix;
};

/** Sums of a batch for an entry, which they have the shape of. */
struct imat_batch_sums {
    struct imat_sum *sums; /* NULL: none of its rows counted yet */
    uint64_t *counts;
    uint64_t *use; /* NULL: rows are not told apart */
};

/** A backend that shows its products. */
struct imat_hook {
    struct kern_observer observer;
    struct imat_collector *collector;
    /* What the last product was, if it counted; n_rows is 0 else. */
    const struct imat_place *at;
    const float *input;          /* backend memory */
    size_t n_rows;               /* of the input */
    struct imat_squares squares; /* of the input */
    bool plain;                  /* it has none */
    struct imat_squares before;  /* memory for those of the product before that */
    size_t n_counted;            /* of its rows; of them are the squares */
    const float *x;              /* host: these rows */
    float *host;                 /* a device's, copied, or those of the rows that count */
    size_t capacity;
    struct imat_batch_sums *parts; /* [entries]: of the batch at work */
    struct base_pool *pool;        /* of a device, which lends none */
};

struct imat_collector {
    const struct gguf_file *file;
    struct imat_entry *entries; /* [n], ascending by name */
    struct imat_place *places;  /* [n_places], ascending */
    size_t n, n_places;
    struct imat_hook *hooks;
    size_t n_hooks;
    bool masked;          /* rows count that are marked; else all do */
    bool experts_whole;   /* all rows of experts count, nevertheless */
    size_t n_categories;  /* by which rows of experts are told apart; 0: they are not */
    pthread_mutex_t lock; /* of the entries' sums and counts */
    atomic_bool begun;
};

/** Rows of a matrix in packed sums; its sums follow, and of experts its rows by category. */
struct imat_packed {
    uint32_t entry, matrix;
    uint64_t count;
};

/** By how many categories the rows of an entry are told apart: 0 or all. */
size_t imat_n_told_apart(const struct imat_collector *c, uint32_t entry);
/** Bytes that follow a matrix's head in packed sums. */
size_t imat_packed_bytes(const struct imat_collector *c, uint32_t entry);

/**
 * The next matrix at *at, which is below n_bytes; what follows its head, which may lie at any
 * address, begins at *at after it. Fails: STATUS_FORMAT (no such matrix, or it is cut off).
 */
enum status imat_packed_next(const struct imat_collector *c, struct base_string bytes, size_t *at,
                             struct imat_packed *of, struct status_why *why);

#endif
