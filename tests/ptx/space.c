#include "tests/ptx/space.h"

#include <stdlib.h>

#include "tests/ptx/text.h"

void ptx_space_add(struct ptx_space *s, void *memory, size_t n_bytes)
{
    if (s->n == s->capacity) {
        s->capacity = 2 * s->capacity + 16;
        s->list = ptx_grow(s->list, s->capacity * sizeof *s->list);
    }
    struct ptx_allocation *a = &s->list[s->n++];
    *a = (struct ptx_allocation){.memory = memory, .n_bytes = n_bytes};
    ptx_shadow_open(&a->shadow, n_bytes);
}

void ptx_space_add_constant(struct ptx_space *s, void *memory, size_t n_bytes)
{
    ptx_space_add(s, memory, n_bytes);
    s->list[s->n - 1].is_constant = true;
    ptx_shadow_write(&s->list[s->n - 1].shadow, 0, n_bytes);
}

void ptx_space_remove(struct ptx_space *s, const void *memory)
{
    for (size_t i = 0; i < s->n; i++) {
        if (s->list[i].memory != memory)
            continue;
        ptx_shadow_close(&s->list[i].shadow);
        s->list[i] = s->list[--s->n];
        return;
    }
}

struct ptx_allocation *ptx_space_find(const struct ptx_space *s, uint64_t address, uint32_t *hint)
{
    if (*hint < s->n) {
        struct ptx_allocation *a = &s->list[*hint];
        if (address - (uint64_t)(uintptr_t)a->memory < a->n_bytes)
            return a;
    }
    for (size_t i = 0; i < s->n; i++) {
        struct ptx_allocation *a = &s->list[i];
        if (address - (uint64_t)(uintptr_t)a->memory >= a->n_bytes)
            continue;
        *hint = (uint32_t)i;
        return a;
    }
    return NULL;
}
