#include "kernels/observer.h"

#include <assert.h>

void kern_observe(struct kern_observer *o, struct kern_backend *b, void *owner)
{
    assert(!b->observer);
    *o = (struct kern_observer){.ops = *b->ops, .inner = b->ops, .backend = b, .owner = owner};
    b->ops = &o->ops;
    b->observer = o;
}

void kern_observe_end(struct kern_observer *o)
{
    if (!o->backend)
        return;
    o->backend->ops = o->inner;
    o->backend->observer = NULL;
    o->backend = NULL;
}

void *kern_owner_of(const struct kern_backend *b)
{
    return b->observer->owner;
}
