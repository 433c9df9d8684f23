#include "clients/conversion/view.h"

#include <stdio.h>
#include <string.h>

#include "base/arithmetic.h"
#include "kernels/kernels.h"
#include "kernels/quant/round.h"

struct conv_view conv_view_of(const struct gguf_tensor *tensor)
{
    struct conv_view view = {.tensor = tensor, .step = tensor->ne[1], .times = 1};
    memcpy(view.ne, tensor->ne, sizeof view.ne);
    return view;
}

const struct gguf_tensor *conv_scales(const struct gguf_file *file, const struct gguf_tensor *t)
{
    char name[256];
    size_t n = strlen(t->name), end = sizeof ".weight" - 1;
    if (n < end || n >= sizeof name - end || strcmp(t->name + n - end, ".weight") != 0)
        return NULL;
    snprintf(name, sizeof name, "%.*s.scale", (int)(n - end), t->name);
    const struct gguf_tensor *scales = gguf_tensor_find(file, name);
    if (!scales) {
        snprintf(name, sizeof name, "%s.scale", t->name);
        scales = gguf_tensor_find(file, name);
    }
    uint64_t n_matrices = t->ne[2] * t->ne[3];
    bool fits = scales && scales->type->type == GGUF_TYPE_F32 && !scales->view &&
                scales->n_rows == 1 && (scales->ne[0] == 1 || scales->ne[0] == n_matrices);
    return fits ? scales : NULL;
}

/** One value. */
static float value_at(const struct gguf_tensor *t, uint64_t row, uint64_t col)
{
    float block[CONV_RUN];
    uint64_t elems = kern_quant_find(t->type->type)->block_elems;
    kern_tensor_decode(t, row, (size_t)(col - col % elems), (size_t)elems, block);
    return block[col % elems];
}

/** Where a row of heads comes from, or goes to. */
static uint64_t turned(const struct conv_view *view, uint64_t n, uint64_t i)
{
    uint64_t d = view->n_heads ? n / view->n_heads : 0;
    if (!view->turn || d < 2 || d % 2 != 0 || n % view->n_heads != 0)
        return i;
    uint64_t head = i / d, at = i % d;
    at = view->turn > 0 ? at / 2 + (at % 2 ? d / 2 : 0) : at % (d / 2) * 2 + at / (d / 2);
    return head * d + at;
}

static void change(const struct conv_view *view, uint64_t matrix, size_t n, float *y)
{
    float scale = !view->scales ? 1 : view->scales[view->n_scales > 1 ? matrix : 0];
    for (size_t i = 0; i < n; i++)
        y[i] *= scale;
    for (size_t i = 0; i < n && view->through != GGUF_TYPE_F32; i += KERN_PACK_ELEMS)
        kern_round_numbers(view->through, y + i, base_min(n - i, KERN_PACK_ELEMS));
    if (view->times != 1 || view->plus != 0)
        for (size_t i = 0; i < n; i++)
            y[i] = (float)((double)y[i] * view->times + view->plus);
}

void conv_view_read(const struct conv_view *view, uint64_t row, uint64_t first_col, size_t n,
                    float *y)
{
    const struct gguf_tensor *t = view->tensor;
    uint64_t matrix = row / view->ne[1], r = row % view->ne[1];
    uint64_t first = (uint64_t)(view->first + (int64_t)(matrix * view->step));
    if (view->transposed)
        for (size_t i = 0; i < n; i++)
            y[i] = value_at(t, first + first_col + i, r);
    else if (view->turn && t->n_dims == 1)
        for (size_t i = 0; i < n; i++)
            y[i] = value_at(t, first, turned(view, t->ne[0], first_col + i));
    else
        kern_tensor_decode(t, first + turned(view, view->ne[1], r), first_col, n, y);
    change(view, matrix, n, y);
}
