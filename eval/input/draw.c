#include "eval/input/draw.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/random.h"

enum { SEED = 1 };

/** In float32, as the peer computes it; its result may be n, which is beyond the end. */
static size_t scaled(struct base_twister *t, size_t n)
{
    const float scale = 0x1p-32F;
    float share = scale * (float)base_twister_next(t);
    size_t i = (size_t)(share * (float)n);
    return i < n ? i : n - 1;
}

enum status eval_draw(size_t **out, size_t n, size_t n_drawn, enum eval_draw how,
                      struct status_why *why)
{
    assert(n_drawn <= n && n <= INT32_MAX);
    size_t *left, *drawn;
    *out = NULL;
    if (base_array_new(left, n, "tasks", why))
        return STATUS_MEMORY;
    if (base_array_new(drawn, n_drawn, "tasks", why)) {
        free(left);
        return STATUS_MEMORY;
    }
    for (size_t i = 0; i < n; i++)
        left[i] = i;
    struct base_twister twister;
    base_twister_seed(&twister, SEED);
    for (size_t k = 0, n_left = n; k < n_drawn; k++, n_left--) {
        size_t i = how == EVAL_DRAW_UNIFORM ? base_twister_below(&twister, (uint32_t)n_left)
                                            : scaled(&twister, n_left);
        drawn[k] = left[i];
        if (how == EVAL_DRAW_UNIFORM)
            memmove(left + i, left + i + 1, (n_left - i - 1) * sizeof *left);
        else
            left[i] = left[n_left - 1];
    }
    free(left);
    *out = drawn;
    return STATUS_OK;
}
