#include "base/text/strtab.h"

#include <stdlib.h>
#include <sys/random.h>

#include "base/text/hash.h"

enum { FIRST_CAPACITY = 32 };

struct base_strtab_slot {
    uint32_t hash;
    uint32_t entry; /* 1 + the string's number; 0: free */
};

static uint32_t hash_of(const struct base_strtab *t, struct base_string string)
{
    return (uint32_t)(base_hash_bytes(t->seed, string.data, string.n_bytes) >> 32);
}

/** The slot that holds the string, or the free one where it belongs. Half of them are free. */
static struct base_strtab_slot *slot_of(const struct base_strtab *t, struct base_string string,
                                        uint32_t hash)
{
    size_t mask = 2 * t->capacity - 1;
    size_t i = hash & mask;
    for (; t->slots[i].entry; i = (i + 1) & mask) {
        if (t->slots[i].hash != hash)
            continue;
        const struct base_string *known = &t->strings[t->slots[i].entry - 1];
        if (known->n_bytes == string.n_bytes &&
            memcmp(known->data, string.data, string.n_bytes) == 0)
            break;
    }
    return &t->slots[i];
}

/** capacity: a power of two, above the table's. */
static enum status grow(struct base_strtab *t, size_t capacity, struct status_why *why)
{
    size_t n_slots = 2 * t->capacity;
    size_t mask = 2 * capacity - 1;
    struct base_string *strings = realloc(t->strings, capacity * sizeof *strings);
    if (strings)
        t->strings = strings;
    struct base_strtab_slot *slots = strings ? calloc(2 * capacity, sizeof *slots) : NULL;
    if (!slots)
        return status_fail(why, STATUS_MEMORY, "out of memory for %zu strings", capacity);
    /* Without entropy the table still works; only its defence against collisions is gone. */
    if (!t->slots && getentropy(&t->seed, sizeof t->seed) != 0)
        t->seed = (uintptr_t)slots;
    for (size_t k = 0; k < n_slots; k++) {
        size_t i = t->slots[k].hash & mask;
        while (t->slots[k].entry && slots[i].entry)
            i = (i + 1) & mask;
        if (t->slots[k].entry)
            slots[i] = t->slots[k];
    }
    free(t->slots);
    t->slots = slots;
    t->capacity = capacity;
    return STATUS_OK;
}

enum status base_strtab_reserve(struct base_strtab *t, size_t n, struct status_why *why)
{
    size_t capacity = t->capacity ? t->capacity : FIRST_CAPACITY;
    while (capacity < n)
        capacity *= 2;
    return capacity > t->capacity ? grow(t, capacity, why) : STATUS_OK;
}

enum status base_strtab_add(struct base_strtab *t, struct base_string string, int32_t *number,
                            struct status_why *why)
{
    if (t->n == INT32_MAX)
        return status_fail(why, STATUS_UNSUPPORTED, "more than %zu strings", t->n);
    enum status status = t->n < t->capacity ? STATUS_OK : base_strtab_reserve(t, t->n + 1, why);
    if (status)
        return status;
    *number = (int32_t)t->n;
    if (string.n_bytes > 0) {
        uint32_t hash = hash_of(t, string);
        struct base_strtab_slot *slot = slot_of(t, string, hash);
        if (slot->entry) {
            *number = (int32_t)(slot->entry - 1);
            return STATUS_OK;
        }
        *slot = (struct base_strtab_slot){hash, (uint32_t)t->n + 1};
    }
    t->strings[t->n++] = string;
    return STATUS_OK;
}

int32_t base_strtab_find(const struct base_strtab *t, struct base_string string)
{
    return t->slots ? (int32_t)slot_of(t, string, hash_of(t, string))->entry - 1 : -1;
}

void base_strtab_free(struct base_strtab *t)
{
    free(t->strings);
    free(t->slots);
    *t = (struct base_strtab){0};
}
