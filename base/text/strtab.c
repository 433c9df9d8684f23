#include "base/text/strtab.h"

#include <stdlib.h>
#include <sys/random.h>

#include "base/text/hash.h"

struct base_strtab_slot {
    uint32_t hash; /* the upper half: the lower one has chosen the slot */
    int32_t i_key; /* -1: free */
};

enum status base_strtab_init(struct base_strtab *t, const struct base_string *keys, size_t n_keys,
                             struct status_why *why)
{
    size_t n_slots = 16;
    while (n_slots < n_keys * 2)
        n_slots *= 2;
    *t = (struct base_strtab){.mask = n_slots - 1, .keys = keys};
    t->slots = malloc(n_slots * sizeof *t->slots);
    if (!t->slots)
        return status_fail(why, STATUS_MEMORY, "cannot allocate an index of %zu strings", n_keys);
    for (size_t i = 0; i < n_slots; i++)
        t->slots[i].i_key = -1;
    /* Without entropy the table still works; only its defence against collisions is gone. */
    if (getrandom(&t->seed, sizeof t->seed, GRND_NONBLOCK) != sizeof t->seed)
        t->seed = (uintptr_t)t->slots;

    for (size_t i = 0; i < n_keys; i++) {
        if (keys[i].n_bytes == 0)
            continue;
        int32_t twin = base_strtab_find(t, keys[i].data, keys[i].n_bytes);
        if (twin >= 0)
            return status_fail(why, STATUS_FORMAT,
                               "entries %d and %zu are equal; expected "
                               "distinct strings",
                               twin, i);
        uint64_t h = base_hash_bytes(t->seed, keys[i].data, keys[i].n_bytes);
        size_t s = h & t->mask;
        while (t->slots[s].i_key >= 0)
            s = (s + 1) & t->mask;
        t->slots[s] = (struct base_strtab_slot){(uint32_t)(h >> 32), (int32_t)i};
    }
    return STATUS_OK;
}

void base_strtab_free(struct base_strtab *t)
{
    free(t->slots);
    *t = (struct base_strtab){0};
}

int32_t base_strtab_find(const struct base_strtab *t, const char *bytes, size_t n_bytes)
{
    uint64_t h = base_hash_bytes(t->seed, bytes, n_bytes);
    for (size_t s = h & t->mask; t->slots[s].i_key >= 0; s = (s + 1) & t->mask) {
        const struct base_string *key = &t->keys[t->slots[s].i_key];
        if (t->slots[s].hash == (uint32_t)(h >> 32) && key->n_bytes == n_bytes &&
            memcmp(key->data, bytes, n_bytes) == 0)
            return t->slots[s].i_key;
    }
    return -1;
}
