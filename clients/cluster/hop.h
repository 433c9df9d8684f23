/**
 * Residual streams of batches on their way from a rank to the one that has the next layers. A
 * thread sends one, or receives one, while the caller computes another.
 */
#ifndef CLUSTER_HOP_H
#define CLUSTER_HOP_H

#include <pthread.h>

#include "clients/cluster/link.h"

/** BATCH, and what STREAM begins with: items first .. end - 1. */
struct cluster_remote_batch {
    uint64_t first, end;
};

/** Called fifty times a second by a rank that waits; a failure ends the waiting. */
typedef enum status cluster_look_fn(void *user, struct status_why *why);

struct cluster_hop_options {
    struct cluster_link *link; /* this hop's until it is closed */
    bool sends;                /* else it receives */
    size_t n_bytes;            /* of a batch's streams, at most */
    cluster_look_fn *look;
    void *user;
};

/** One direction. The first three are the caller's between cluster_hop_await and _pass. */
struct cluster_hop {
    struct cluster_remote_batch batch;
    size_t n_bytes; /* of values */
    float *values;  /* of all models in step, one after the other */

    struct cluster_hop_options options;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t turned;
    bool moving; /* it is the thread's turn */
    bool closed;
    enum status status; /* of the thread, which has then ended */
    struct status_why why;
};

/** Fails: STATUS_MEMORY. */
enum status cluster_hop_open(struct cluster_hop **out, const struct cluster_hop_options *options,
                             struct status_why *why);
/** Ends also what is on its way. NULL is allowed. */
void cluster_hop_close(struct cluster_hop *hop);

/**
 * Wait until a batch has come, or the one before has been sent.
 * Fails: STATUS_DEVICE (the connection broke, and `look` found no reason for it within two
 * seconds), what `look` fails with.
 */
enum status cluster_hop_await(struct cluster_hop *hop, struct status_why *why);
/** Send what the caller has filled in; or receive the next, what came is not needed any more. */
void cluster_hop_pass(struct cluster_hop *hop);

#endif
