/* The operations' front door: checks arguments once for all backends, then calls the backend. */
#include "kernels/backend.h"

#include <assert.h>

void kern_close(struct kern_backend *b)
{
    if (b)
        b->ops->close(b);
}

void kern_set_cancel(struct kern_backend *b, const atomic_bool *flag)
{
    b->cancel = flag;
}

enum status kern_alloc(struct kern_backend *b, void **out, size_t n_bytes, struct status_why *why)
{
    *out = NULL;
    return b->ops->alloc(b, out, n_bytes, why);
}

void kern_free(struct kern_backend *b, void *memory)
{
    if (memory)
        b->ops->free(b, memory);
}

enum status kern_upload(struct kern_backend *b, void *to, const void *from, size_t n_bytes,
                        struct status_why *why)
{
    assert((to && from) || n_bytes == 0);
    return n_bytes ? b->ops->upload(b, to, from, n_bytes, why) : STATUS_OK;
}

enum status kern_download(struct kern_backend *b, void *to, const void *from, size_t n_bytes,
                          struct status_why *why)
{
    assert((to && from) || n_bytes == 0);
    return n_bytes ? b->ops->download(b, to, from, n_bytes, why) : STATUS_OK;
}
