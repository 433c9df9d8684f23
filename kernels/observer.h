/** Somebody between a backend and its caller, who sees operations and may change them. */
#ifndef KERNELS_OBSERVER_H
#define KERNELS_OBSERVER_H

#include "kernels/implementation.h"

/** Zero-initialise. */
struct kern_observer {
    struct kern_backend_ops ops; /* the backend's; the owner puts its own in the place of some */
    const struct kern_backend_ops *inner; /* what the backend does without it */
    struct kern_backend *backend;         /* NULL: it observes none */
    void *owner;
};

/**
 * From now on the backend, which has no other observer, does o->ops. An operation of the owner's
 * finds it by kern_owner_of(), and does the backend's by o->inner.   Not while the backend
 * computes.
 */
void kern_observe(struct kern_observer *o, struct kern_backend *b, void *owner);
/** The backend, if there is one, which must still be open, is what it was. */
void kern_observe_end(struct kern_observer *o);
/** The owner of the backend's observer. */
void *kern_owner_of(const struct kern_backend *b);

#endif
