#include "clients/activations/places.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text/words.h"

static int compare(const void *a, const void *b)
{
    const struct act_place *p = a, *q = b;
    return p->begin == q->begin ? 0 : (uintptr_t)p->begin < (uintptr_t)q->begin ? -1 : 1;
}

/** The tensor's input_scale: one for all its matrices, or one for each; NULL: there is none. */
static enum status find_scales(const struct gguf_tensor **out, const struct gguf_file *file,
                               const struct gguf_tensor *t, struct status_why *why)
{
    char name[256];
    const char ending[] = ".weight";
    *out = NULL;
    if (!base_ends_with(t->name, ending))
        return STATUS_OK;
    snprintf(name, sizeof name, "%.*s.input_scale", (int)(strlen(t->name) - (sizeof ending - 1)),
             t->name);
    const struct gguf_tensor *s = gguf_tensor_find(file, name);
    uint64_t n = s ? s->ne[0] * s->n_rows : 0;
    if (s && (s->type_id != GGUF_TYPE_F32 || s->view || (n != 1 && n != t->ne[2] * t->ne[3])))
        return status_fail(why, STATUS_FORMAT,
                           "%s: tensor '%s' is %s of %llu numbers, expected F32, one number or one "
                           "for each matrix of '%s'",
                           gguf_path(file), name, gguf_type_name(s->type_id), (unsigned long long)n,
                           t->name);
    *out = s;
    return STATUS_OK;
}

static enum status take_scale(struct act_place *place, const struct gguf_file *file,
                              const struct gguf_tensor *s, size_t matrix, struct status_why *why)
{
    size_t i = s->ne[0] * s->n_rows == 1 ? 0 : matrix;
    memcpy(&place->scale, (const uint8_t *)s->data + i * sizeof place->scale, sizeof place->scale);
    place->scaled = true;
    if (place->scale > 0 && isfinite(place->scale))
        return STATUS_OK;
    return status_fail(why, STATUS_FORMAT,
                       "%s: tensor '%s' has the number %g, expected scales "
                       "above 0",
                       gguf_path(file), s->name, (double)place->scale);
}

static enum status add_tensor(struct act_places *places, const struct gguf_file *file,
                              const struct gguf_tensor *t, struct status_why *why)
{
    const struct gguf_view *view = t->view;
    uint64_t step = view && view->row_step ? view->row_step : t->row_bytes;
    size_t n_bytes = (size_t)(view && view->col_step ? t->ne[0] * view->col_step : t->ne[1] * step);
    bool is_table = view && view->part_rows; /* which no product is of */
    size_t n_matrices = is_table ? 0 : (size_t)(t->ne[2] * t->ne[3]);
    const struct gguf_tensor *scales;
    enum status status = find_scales(&scales, file, t, why);
    for (size_t m = 0; m < n_matrices && !status; m++) {
        const uint8_t *begin = gguf_tensor_matrix(t, m);
        struct act_place *place = &places->items[places->n++];
        *place = (struct act_place){.begin = begin, .end = begin + n_bytes, .scale = 1};
        status = scales ? take_scale(place, file, scales, m, why) : STATUS_OK;
    }
    return status;
}

/** Views of one tensor lie over one another: they are one place. */
static void unite(struct act_places *places)
{
    size_t n = 0;
    for (size_t i = 0; i < places->n; i++) {
        const struct act_place *place = &places->items[i];
        struct act_place *last = n ? &places->items[n - 1] : NULL;
        if (last && (uintptr_t)place->begin < (uintptr_t)last->end) {
            if ((uintptr_t)place->end > (uintptr_t)last->end)
                last->end = place->end;
        } else {
            places->items[n++] = *place;
        }
    }
    places->n = n;
}

enum status act_places_add(struct act_places *places, const struct gguf_file *file,
                           struct status_why *why)
{
    size_t n_tensors = gguf_n_tensors(file), n = places->n;
    for (size_t i = 0; i < n_tensors; i++)
        n += (size_t)(gguf_tensor_at(file, i)->ne[2] * gguf_tensor_at(file, i)->ne[3]);
    enum status status = base_array_reserve(places->items, places->capacity, n, "tensors", why);
    for (size_t i = 0; i < n_tensors && !status; i++)
        status = add_tensor(places, file, gguf_tensor_at(file, i), why);
    if (places->n)
        qsort(places->items, places->n, sizeof *places->items, compare);
    unite(places);
    return status;
}

const struct act_place *act_places_find(const struct act_places *places, const void *address)
{
    size_t low = 0, high = places->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((uintptr_t)places->items[middle].begin <= (uintptr_t)address)
            low = middle + 1;
        else
            high = middle;
    }
    const struct act_place *place = low ? &places->items[low - 1] : NULL;
    return place && (uintptr_t)address < (uintptr_t)place->end ? place : NULL;
}
