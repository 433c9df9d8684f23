#include "kernels/cuda/weights/cache.h"

#include <stdlib.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "kernels/cuda/context.h"

/* Panels uploaded ahead: enough that one is uploaded while others are multiplied. */
enum { LOOK_AHEAD = 3 };

/* Decoded panels that are given up together: few allocations, and little is decoded again. */
#define CHUNK_BYTES ((size_t)2 << 30)

/* Events: one for uploads of panels that stay, then two for each slot. */
enum { EVENT_RESIDENT, EVENT_SLOTS };

static unsigned ready_event(size_t slot)
{
    return EVENT_SLOTS + 2 * (unsigned)slot;
}

static unsigned free_event(size_t slot)
{
    return ready_event(slot) + 1;
}

size_t kern_cuda_panel_bytes(const struct kern_cuda_panel *panel)
{
    return panel->n_rows * kern_quant_bytes(kern_quant_find(panel->type), panel->n_cols);
}

enum status kern_cuda_cache_open(struct kern_cuda *cuda, struct status_why *why)
{
    struct kern_cuda_cache *cache = &cuda->cache;
    const struct kern_cuda_options *options = &cuda->options;
    cache->n_slots = options->n_slots;
    cache->slot_bytes = options->panel_size;
    cache->chunk_bytes = CHUNK_BYTES;
    cache->limit = options->weight_bytes;
    size_t ring = base_min(cache->n_slots * cache->slot_bytes, cache->limit / 2);
    cache->resident_limit = cache->limit - ring;
    if (base_array_new(cache->slots, cache->n_slots, "slots", why))
        return STATUS_MEMORY;
    return STATUS_OK;
}

static void drop_vector(struct kern_cuda *cuda, struct kern_cuda_panel *panel)
{
    cuda->device->ops->free(cuda->device, panel->vector);
    panel->vector = NULL;
}

static void drop_packed(struct kern_cuda *cuda, struct kern_cuda_panel *panel)
{
    if (panel->packed && panel->slot >= 0)
        cuda->cache.slots[panel->slot].panel = 0;
    if (panel->packed && panel->slot < 0) {
        cuda->device->ops->free(cuda->device, panel->packed);
        cuda->cache.resident_bytes -= kern_cuda_panel_bytes(panel);
    }
    panel->packed = NULL;
    panel->slot = -1;
}

void kern_cuda_cache_close(struct kern_cuda *cuda)
{
    struct kern_cuda_cache *cache = &cuda->cache;
    for (size_t i = 0; i < cache->n_panels; i++) {
        drop_packed(cuda, &cache->panels[i]);
        kern_cuda_cache_forget(cuda, i);
        drop_vector(cuda, &cache->panels[i]);
    }
    for (size_t i = 0; cache->slots && i < cache->n_slots; i++)
        cuda->device->ops->free(cuda->device, cache->slots[i].memory);
    free(cache->panels);
    free(cache->slots);
    free(cache->chunks);
    *cache = (struct kern_cuda_cache){0};
}

static size_t bucket_of(const uint8_t *data, size_t n_rows)
{
    uint64_t z = (uint64_t)(uintptr_t)data + n_rows * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 31) * 0xbf58476d1ce4e5b9u;
    return (size_t)(z >> 40) % KERN_CUDA_CACHE_BUCKETS;
}

/** Copies that are under way have read the bytes already. */
void kern_cuda_forget(struct kern_backend *b, const void *data, size_t n_bytes)
{
    struct kern_cuda *cuda = kern_cuda_of(b);
    uintptr_t first = (uintptr_t)data;
    (void)kern_cuda_settle(cuda, NULL); /* a norm or sums that wait may need a vector of it */
    for (size_t i = 0; i < cuda->cache.n_panels; i++) {
        struct kern_cuda_panel *panel = &cuda->cache.panels[i];
        uintptr_t at = (uintptr_t)panel->data;
        if (at < first || at - first >= n_bytes)
            continue;
        drop_packed(cuda, panel);
        kern_cuda_cache_forget(cuda, i);
        drop_vector(cuda, panel);
        panel->forgotten = true;
    }
}

enum status kern_cuda_cache_find(struct kern_cuda *cuda, const struct kern_weight *weight,
                                 size_t row, size_t n_rows, size_t *index, struct status_why *why)
{
    struct kern_cuda_cache *cache = &cuda->cache;
    const struct kern_weight part = kern_weight_rows(weight, row, n_rows);
    size_t *bucket = &cache->buckets[bucket_of(part.data, n_rows)];
    for (size_t i = *bucket; i > 0; i = cache->panels[i - 1].next) {
        struct kern_cuda_panel *panel = &cache->panels[i - 1];
        if (panel->data != part.data || panel->n_rows != n_rows || panel->n_cols != part.n_cols ||
            panel->type != part.type || panel->row_bytes != part.row_bytes ||
            panel->rows != part.rows || panel->col_step != part.col_step ||
            !gguf_scales_equal(&panel->scales, &part.scales))
            continue;
        if (panel->generation != weight->generation) {
            drop_packed(cuda, panel);
            panel->decoded = NULL; /* its place serves the new generation */
            drop_vector(cuda, panel);
            panel->generation = weight->generation;
        }
        panel->forgotten = false;
        *index = i - 1;
        return STATUS_OK;
    }
    enum status status =
        base_array_reserve(cache->panels, cache->capacity, cache->n_panels + 1, "panels", why);
    if (status)
        return status;
    *index = cache->n_panels++;
    cache->panels[*index] = (struct kern_cuda_panel){
        .data = part.data,
        .rows = part.rows,
        .scales = part.scales,
        .row_bytes = weight->row_bytes,
        .col_step = weight->col_step,
        .in_bundle = row % gguf_type_info((uint32_t)weight->type)->bundle_rows,
        .n_rows = n_rows,
        .n_cols = weight->n_cols,
        .type = weight->type,
        .generation = weight->generation,
        .slot = -1,
        .next = *bucket,
    };
    *bucket = *index + 1;
    return STATUS_OK;
}

static enum status upload(struct kern_cuda *cuda, const struct kern_cuda_panel *panel, void *to,
                          unsigned event, struct status_why *why)
{
    const struct kern_cuda_device_ops *ops = cuda->device->ops;
    const struct kern_cuda_rows rows = {
        .first = panel->data - panel->in_bundle * panel->row_bytes,
        .n_rows = panel->n_rows,
        .row_bytes = kern_cuda_panel_bytes(panel) / panel->n_rows,
        .stride = panel->row_bytes,
        .which = panel->rows,
        .n_cols = kern_cuda_copied_cols(panel->type, panel->col_step, panel->n_cols),
        .col_step = panel->col_step,
        .type = panel->type,
        .first_row = panel->in_bundle,
        .scales = panel->scales};
    enum status status = ops->copy_in(cuda->device, KERN_CUDA_COPY, to, &rows, why);
    if (!status)
        status = ops->signal(cuda->device, KERN_CUDA_COPY, event, why);
    cuda->cache.n_uploads++;
    return status;
}

/** Whether a packed panel may stay; decoded ones give way to it. */
static bool fits(struct kern_cuda *cuda, size_t n_bytes)
{
    struct kern_cuda_cache *cache = &cuda->cache;
    if (cache->resident_bytes + n_bytes > cache->resident_limit)
        return false;
    while (cache->resident_bytes + cache->decoded_bytes + n_bytes > cache->resident_limit &&
           kern_cuda_cache_shrink(cuda))
        continue;
    return true;
}

/** Give the panel memory of its own and upload it. STATUS_MEMORY: stream it instead. */
static enum status settle(struct kern_cuda *cuda, struct kern_cuda_panel *panel,
                          struct status_why *why)
{
    size_t n_bytes = kern_cuda_panel_bytes(panel);
    if (!fits(cuda, n_bytes))
        return status_fail(why, STATUS_MEMORY, "no room for %zu bytes of weights", n_bytes);
    enum status status = kern_cuda_memory(cuda, &panel->packed, n_bytes, why);
    if (status)
        return status;
    cuda->cache.resident_bytes += n_bytes;
    status = upload(cuda, panel, panel->packed, EVENT_RESIDENT, why);
    if (!status)
        status = cuda->device->ops->wait(cuda->device, KERN_CUDA_COMPUTE, EVENT_RESIDENT, why);
    if (status)
        drop_packed(cuda, panel);
    return status;
}

enum status kern_cuda_cache_settle(struct kern_cuda *cuda, size_t index, bool *stays,
                                   struct status_why *why)
{
    struct kern_cuda_panel *panel = &cuda->cache.panels[index];
    struct status_why why_not = {""};
    enum status status =
        panel->packed || panel->decoded ? STATUS_OK : settle(cuda, panel, &why_not);
    *stays = !status;
    if (!status || status == STATUS_MEMORY)
        return STATUS_OK;
    return status_fail(why, status, "%s", why_not.text);
}

/** The slot that has not been used for longest. */
static size_t oldest_slot(const struct kern_cuda_cache *cache)
{
    size_t oldest = 0;
    for (size_t i = 1; i < cache->n_slots; i++)
        if (cache->slots[i].last_used < cache->slots[oldest].last_used)
            oldest = i;
    return oldest;
}

/** Begin to upload the panel into a slot, once what was computed with the slot is done. */
static enum status stream(struct kern_cuda *cuda, size_t index, struct status_why *why)
{
    struct kern_cuda_cache *cache = &cuda->cache;
    struct kern_cuda_panel *panel = &cache->panels[index];
    size_t i_slot = oldest_slot(cache), n_bytes = kern_cuda_panel_bytes(panel);
    struct kern_cuda_slot *slot = &cache->slots[i_slot];
    if (n_bytes > cache->slot_bytes)
        return status_fail(why, STATUS_MEMORY,
                           "a row of %zu bytes does not fit the device's %zu bytes for weights",
                           n_bytes / panel->n_rows, cache->limit);
    enum status status = STATUS_OK;
    if (!slot->memory)
        status = kern_cuda_memory(cuda, &slot->memory, cache->slot_bytes, why);
    else
        status = cuda->device->ops->wait(cuda->device, KERN_CUDA_COPY, free_event(i_slot), why);
    if (status)
        return status;
    if (slot->panel > 0)
        drop_packed(cuda, &cache->panels[slot->panel - 1]);
    status = upload(cuda, panel, slot->memory, ready_event(i_slot), why);
    if (status)
        return status;
    slot->panel = index + 1;
    slot->last_used = ++cache->n_uses;
    panel->packed = slot->memory;
    panel->slot = (int)i_slot;
    panel->awaited = false;
    return STATUS_OK;
}

/** Whether using the panel will need an upload into a slot. */
static bool will_stream(const struct kern_cuda_cache *cache, const struct kern_cuda_panel *panel)
{
    return !panel->packed && !panel->decoded && !panel->forgotten &&
           cache->resident_bytes + kern_cuda_panel_bytes(panel) > cache->resident_limit;
}

static enum status look_ahead(struct kern_cuda *cuda, size_t index, struct status_why *why)
{
    struct kern_cuda_cache *cache = &cuda->cache;
    enum status status = STATUS_OK;
    for (int i = 0; !status && i < LOOK_AHEAD && cache->panels[index].after; i++) {
        index = cache->panels[index].after - 1;
        if (will_stream(cache, &cache->panels[index]))
            status = stream(cuda, index, why);
    }
    return status;
}

void kern_cuda_cache_touch(struct kern_cuda *cuda, size_t index)
{
    struct kern_cuda_cache *cache = &cuda->cache;
    const struct kern_cuda_panel *panel = &cache->panels[index];
    cache->n_uses++;
    if (panel->place)
        cache->chunks[panel->chunk].last_used = cache->n_uses;
    if (cache->last > 0)
        cache->panels[cache->last - 1].after = index + 1;
    cache->last = index + 1;
}

enum status kern_cuda_cache_packed(struct kern_cuda *cuda, size_t index, const uint8_t **packed,
                                   struct status_why *why)
{
    struct kern_cuda_cache *cache = &cuda->cache;
    kern_cuda_cache_touch(cuda, index);
    enum status status = STATUS_OK;
    if (!cache->panels[index].packed) {
        status = settle(cuda, &cache->panels[index], why);
        if (status == STATUS_MEMORY)
            status = stream(cuda, index, why);
    }
    if (status)
        return status;
    struct kern_cuda_panel *panel = &cache->panels[index];
    if (panel->slot >= 0) {
        cache->slots[panel->slot].last_used = ++cache->n_uses;
        if (!panel->awaited)
            status = cuda->device->ops->wait(cuda->device, KERN_CUDA_COMPUTE,
                                             ready_event((size_t)panel->slot), why);
        panel->awaited = true;
    }
    *packed = panel->packed;
    return status;
}

enum status kern_cuda_cache_done(struct kern_cuda *cuda, size_t index, struct status_why *why)
{
    const struct kern_cuda_panel *panel = &cuda->cache.panels[index];
    enum status status = STATUS_OK;
    if (panel->slot >= 0)
        status = cuda->device->ops->signal(cuda->device, KERN_CUDA_COMPUTE,
                                           free_event((size_t)panel->slot), why);
    /* A slot's memory may cost decoded panels, but not the one that the caller is about to use. */
    cuda->cache.held = index + 1;
    if (!status)
        status = look_ahead(cuda, index, why);
    cuda->cache.held = 0;
    return status;
}
