/**
 * Messages between two processes of a run, over a stream socket. A death is noticed: the
 * system closes its sockets. Both sides run the same program on the same kind of machine, so
 * structures travel as they lie in memory.
 */
#ifndef CLUSTER_LINK_H
#define CLUSTER_LINK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum cluster_message_kind {
    CLUSTER_MESSAGE_GREETING, /* rank k: its number and name */
    CLUSTER_MESSAGE_WELCOME,  /* rank 0: it is one of ours */
    CLUSTER_MESSAGE_READY,    /* rank k: its settings, or why it has none */
    CLUSTER_MESSAGE_START,    /* rank 0: where the run begins */
    CLUSTER_MESSAGE_ADDRESS,  /* to rank 0, and on to the rank with the layers before: where it
                                 listens */
    CLUSTER_MESSAGE_STREAM,   /* to the rank with the next layers: what enters them */
    CLUSTER_MESSAGE_BATCH,    /* rank 0: items to evaluate */
    CLUSTER_MESSAGE_FRACTION, /* rank k: how much of the batch is done */
    CLUSTER_MESSAGE_ROWS,     /* rank k: rows to be recorded */
    CLUSTER_MESSAGE_SCORES,   /* rank k: the batch's scores */
    CLUSTER_MESSAGE_SUMS,     /* rank k: what the batch leaves in sums, of units that have them */
    CLUSTER_MESSAGE_FAILED,   /* rank k: a status and its sentence */
    CLUSTER_MESSAGE_END       /* rank 0: the run is over; a status */
};

/** What a message begins with. */
struct cluster_message {
    uint32_t kind;    /* enum cluster_message_kind */
    uint32_t status;  /* enum status, of READY, FAILED and END */
    uint64_t n_bytes; /* that follow */
};

/** One end of a connection. */
struct cluster_link {
    int fd;                       /* -1: closed */
    char name[160];               /* the other end: "rank 3 (node7, process 4711)" */
    const atomic_bool *cancel[2]; /* waiting ends once one is set; each may be NULL */
    double until;                 /* or at this time of base_clock_seconds; 0: it does not */
    atomic_bool lost;             /* the other side is gone */
};

/** A part of what is sent. */
struct cluster_part {
    const void *bytes;
    size_t n_bytes;
};

/** Take a connected socket. It is the link's from now on. name: copied. */
void cluster_link_open(struct cluster_link *link, int fd, const char *name);
/** Twice is allowed. */
void cluster_link_close(struct cluster_link *link);

/**
 * Send a message made of parts. Waits where the other side does not read.
 * Fails: STATUS_DEVICE (the other side is gone, or it is too late), STATUS_CANCELLED.
 */
enum status cluster_link_send(struct cluster_link *link, enum cluster_message_kind kind,
                              enum status status, const struct cluster_part *parts, size_t n_parts,
                              struct status_why *why);

/** Wait for the head of the next message. Fails: as cluster_link_send. */
enum status cluster_link_receive(struct cluster_link *link, struct cluster_message *message,
                                 struct status_why *why);
/** Read the next n bytes of its body. Fails: as cluster_link_send. */
enum status cluster_link_read(struct cluster_link *link, void *bytes, size_t n_bytes,
                              struct status_why *why);
/** The body of a message as a text: malloc, ends with a NUL. Fails: also STATUS_MEMORY. */
enum status cluster_link_read_text(struct cluster_link *link, const struct cluster_message *message,
                                   char **text, struct status_why *why);

/** Whether a message, or the end of the connection, has come. */
bool cluster_link_pending(const struct cluster_link *link);

/** Whether the next message has come and is END: rank 0 says it, then the link may break. */
bool cluster_link_has_ended(const struct cluster_link *link);

/** What a message that was not expected means. Returns STATUS_DEVICE. */
enum status cluster_link_unexpected(const struct cluster_link *link,
                                    const struct cluster_message *message, struct status_why *why);

/**
 * The status and sentence that a READY or FAILED message carries, with the name in front; of a
 * cancelled rank there is no sentence.
 */
enum status cluster_link_failure(struct cluster_link *link, const struct cluster_message *message,
                                 struct status_why *why);

#endif
