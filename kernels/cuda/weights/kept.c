/*
 * Panels that are kept decoded. They lie in chunks: a chunk is one allocation for a panel and for
 * those after it that wait to be decoded, as all do when a model has been preloaded. Where memory
 * is short a chunk is given up as a whole.
 */
#include "base/array.h"
#include "kernels/cuda/context.h"

enum { ALIGNMENT = 256 };

static size_t place_bytes(const struct kern_cuda_panel *panel)
{
    return base_round_up(panel->decoded_bytes, ALIGNMENT);
}

/** Whether a preloaded panel has no place yet. */
static bool waits(const struct kern_cuda_panel *panel)
{
    return panel->preloaded && panel->packed && panel->slot < 0 && !panel->place;
}

/** A panel, then those after it that wait, which may share a chunk: how many, and their bytes. */
static size_t count_waiting(const struct kern_cuda_cache *cache, size_t index, size_t most,
                            size_t *n_bytes)
{
    size_t used = cache->resident_bytes + cache->decoded_bytes, n = 0;
    size_t room = cache->resident_limit - base_min(used, cache->resident_limit);
    *n_bytes = 0;
    for (size_t i = index; i < cache->n_panels && n < most; i++) {
        const struct kern_cuda_panel *panel = &cache->panels[i];
        if (i > index && !waits(panel))
            continue;
        size_t total = *n_bytes + place_bytes(panel);
        if (total > room || (n > 0 && total > cache->chunk_bytes))
            break;
        *n_bytes = total;
        n++;
    }
    return n;
}

/** A chunk that is not in use, or NULL. */
static struct kern_cuda_chunk *unused_chunk(struct kern_cuda_cache *cache)
{
    size_t i = 0;
    while (i < cache->n_chunks && cache->chunks[i].memory)
        i++;
    if (base_array_reserve(cache->chunks, cache->chunk_capacity, i + 1, "chunks", NULL))
        return NULL;
    if (i == cache->n_chunks)
        cache->n_chunks++;
    cache->chunks[i] = (struct kern_cuda_chunk){.last_used = cache->n_uses};
    return &cache->chunks[i];
}

/** Give the panel a place, and as many of those that wait as there is room for. */
static void make_places(struct kern_cuda *cuda, size_t index)
{
    struct kern_cuda_cache *cache = &cuda->cache;
    struct kern_cuda_chunk *chunk = unused_chunk(cache);
    if (!chunk)
        return;
    size_t n = count_waiting(cache, index, SIZE_MAX, &chunk->n_bytes);
    while (n > 0 && cuda->device->ops->alloc(cuda->device, &chunk->memory, chunk->n_bytes, NULL)) {
        chunk->memory = NULL;
        n = count_waiting(cache, index, n / 2, &chunk->n_bytes);
    }
    cache->decoded_bytes += chunk->n_bytes;
    char *place = chunk->memory;
    for (size_t i = index; chunk->n_panels < n; i++) {
        struct kern_cuda_panel *panel = &cache->panels[i];
        if (i > index && !waits(panel))
            continue;
        panel->place = place;
        panel->chunk = (size_t)(chunk - cache->chunks);
        place += place_bytes(panel);
        chunk->n_panels++;
    }
}

void *kern_cuda_cache_keep(struct kern_cuda *cuda, size_t index, size_t n_bytes)
{
    struct kern_cuda_panel *panel = &cuda->cache.panels[index];
    panel->decoded_bytes = n_bytes;
    if (!panel->place)
        make_places(cuda, index);
    return panel->decoded = panel->place;
}

static void free_chunk(struct kern_cuda *cuda, struct kern_cuda_chunk *chunk)
{
    cuda->device->ops->free(cuda->device, chunk->memory);
    cuda->cache.decoded_bytes -= chunk->n_bytes;
    *chunk = (struct kern_cuda_chunk){0};
}

void kern_cuda_cache_forget(struct kern_cuda *cuda, size_t index)
{
    struct kern_cuda_panel *panel = &cuda->cache.panels[index];
    if (!panel->place)
        return;
    panel->place = panel->decoded = NULL;
    struct kern_cuda_chunk *chunk = &cuda->cache.chunks[panel->chunk];
    if (--chunk->n_panels == 0)
        free_chunk(cuda, chunk);
}

bool kern_cuda_cache_shrink(struct kern_cuda *cuda)
{
    struct kern_cuda_cache *cache = &cuda->cache;
    const struct kern_cuda_panel *held = cache->held ? &cache->panels[cache->held - 1] : NULL;
    struct kern_cuda_chunk *oldest = NULL;
    for (size_t i = 0; i < cache->n_chunks; i++) {
        struct kern_cuda_chunk *chunk = &cache->chunks[i];
        bool is_held = held && held->place && held->chunk == i;
        if (chunk->memory && !is_held && (!oldest || chunk->last_used < oldest->last_used))
            oldest = chunk;
    }
    if (!oldest)
        return false;
    for (size_t i = 0; i < cache->n_panels; i++) {
        struct kern_cuda_panel *panel = &cache->panels[i];
        if (panel->place && panel->chunk == (size_t)(oldest - cache->chunks))
            panel->place = panel->decoded = NULL;
    }
    free_chunk(cuda, oldest);
    return true;
}
