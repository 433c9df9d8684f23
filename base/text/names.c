#include "base/text/names.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* 2^61 - 1, a prime: products reduce with a shift and an addition. */
static const uint64_t PRIME = (UINT64_C(1) << 61) - 1;

static uint64_t multiply(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    uint64_t sum = (uint64_t)(product & PRIME) + (uint64_t)(product >> 61);
    return sum >= PRIME ? sum - PRIME : sum;
}

/*
 * A polynomial over the integers modulo 2^61 - 1, its coefficients the length and the bytes
 * in groups of seven, at a random point. Two strings of n groups agree with a probability of
 * at most n / 2^61, whoever chose them.
 */
static uint64_t hash_of(const struct base_names *names, struct base_string string)
{
    uint64_t hash = string.n_bytes % PRIME;
    for (size_t i = 0; i < string.n_bytes; i += 7) {
        uint64_t group = 0;
        size_t left = string.n_bytes - i;
        memcpy(&group, string.data + i, left < 7 ? left : 7);
        hash = (multiply(hash, names->base) + group) % PRIME;
    }
    return multiply(hash, names->base);
}

/* The slot that holds the string, or the free one where it belongs. There is always one. */
static size_t slot_of(const struct base_names *names, struct base_string string, uint64_t hash)
{
    size_t mask = ((size_t)1 << names->n_bits) - 1;
    size_t slot = (size_t)(hash & mask);
    for (; names->slots[slot] != 0; slot = (slot + 1) & mask) {
        const struct base_name *entry = &names->entries[names->slots[slot] - 1];
        if (entry->hash == hash && entry->string.n_bytes == string.n_bytes &&
            memcmp(entry->string.data, string.data, string.n_bytes) == 0)
            break;
    }
    return slot;
}

/* Room for one more entry, with at least half of the slots free. */
static enum status reserve(struct base_names *names, struct status_why *why)
{
    if (names->n_entries < names->capacity)
        return STATUS_OK;
    if (names->base == 0) {
        uint64_t random = 0;
        if (getrandom(&random, sizeof random, GRND_NONBLOCK) != (ssize_t)sizeof random)
            random = (uint64_t)(uintptr_t)names; /* early in boot: the address must do */
        names->base = 2 + random % (PRIME - 2);
    }
    unsigned n_bits = names->n_bits ? names->n_bits + 1 : 6;
    size_t capacity = (size_t)1 << (n_bits - 1);
    struct base_name *entries = realloc(names->entries, capacity * sizeof *entries);
    if (!entries)
        return status_fail(why, STATUS_MEMORY, "out of memory for %zu names", capacity);
    names->entries = entries;
    size_t *slots = calloc((size_t)1 << n_bits, sizeof *slots);
    if (!slots)
        return status_fail(why, STATUS_MEMORY, "out of memory for %zu names", capacity);
    free(names->slots);
    names->slots = slots;
    names->n_bits = n_bits;
    names->capacity = capacity;
    for (size_t i = 0; i < names->n_entries; i++)
        slots[slot_of(names, entries[i].string, entries[i].hash)] = i + 1;
    return STATUS_OK;
}

enum status base_names_add(struct base_names *names, struct base_string string, bool *added,
                           struct status_why *why)
{
    enum status status = reserve(names, why);
    if (status != STATUS_OK)
        return status;
    uint64_t hash = hash_of(names, string);
    size_t slot = slot_of(names, string, hash);
    *added = names->slots[slot] == 0;
    if (*added) {
        names->entries[names->n_entries++] = (struct base_name){string, hash};
        names->slots[slot] = names->n_entries;
    }
    return STATUS_OK;
}

size_t base_names_find(const struct base_names *names, struct base_string string)
{
    if (names->n_entries == 0)
        return BASE_NAMES_NONE;
    size_t slot = slot_of(names, string, hash_of(names, string));
    return names->slots[slot] ? names->slots[slot] - 1 : BASE_NAMES_NONE;
}

void base_names_free(struct base_names *names)
{
    free(names->entries);
    free(names->slots);
    *names = (struct base_names){0};
}
