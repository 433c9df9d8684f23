#include "kernels/backend.h"

void kern_set_cancel(struct kern_backend *b, const atomic_bool *flag)
{
    b->cancel = flag;
}
