#include "gguf/about/zeros.h"

#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "gguf/map.h"

enum {
    PROBE = 256,          /* bytes that are looked at in one place */
    N_PROBES = 1024,      /* places, beside one in each matrix */
    LEAST_STEP = 1 << 20, /* bytes from one to the next */
    MOST = 1 << 30,       /* bytes that are read on from one */
    BY_CHANCE = 64,       /* zeros that a row may end or begin with */
    SEVERAL = 3           /* matrices that nobody puts to 0 one after the other */
};

/** Bytes of a shard that a matrix, or all matrices of a tensor, lie in. */
struct stretch {
    size_t shard;
    uint64_t begin, end;
    const struct gguf_tensor *tensor;
};

struct search {
    const struct gguf_file *file;
    struct stretch *stretches; /* by shard and place */
    size_t n;
    uint64_t step; /* bytes from one probe to the next */
    gguf_zeros_found *found;
    void *user;
};

/** How many bytes from p on are zero, and before p; at most n. */
static uint64_t zeros_from(const uint8_t *p, uint64_t n)
{
    static const uint8_t none[4096];
    uint64_t at = 0;
    while (n - at >= sizeof none && memcmp(p + at, none, sizeof none) == 0)
        at += sizeof none;
    while (at < n && p[at] == 0)
        at++;
    return at;
}

static uint64_t zeros_before(const uint8_t *p, uint64_t n)
{
    static const uint8_t none[4096];
    uint64_t at = 0;
    while (n - at >= sizeof none && memcmp(p - at - sizeof none, none, sizeof none) == 0)
        at += sizeof none;
    while (at < n && p[-1 - (int64_t)at] == 0)
        at++;
    return at;
}

/** The shard that bytes lie in, most likely this one; n_shards: none, they are in other memory. */
static size_t shard_of(const struct gguf_file *file, size_t likely, const void *data,
                       uint64_t *offset)
{
    size_t n = gguf_n_shards(file);
    for (size_t i = 0; i < n; i++) {
        size_t shard = (likely + i) % n;
        uint64_t n_bytes, begin;
        const void *all = gguf_shard_data(file, shard, &n_bytes, &begin);
        *offset = (uintptr_t)data - (uintptr_t)all;
        if ((uintptr_t)data >= (uintptr_t)all && *offset < n_bytes)
            return shard;
    }
    return n;
}

static int in_order(const void *a, const void *b)
{
    const struct stretch *x = a, *y = b;
    if (x->shard != y->shard)
        return x->shard < y->shard ? -1 : 1;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

static void list_stretches(struct search *s, const struct gguf_tensor *t, uint64_t *n_bytes)
{
    uint64_t n = gguf_tensor_n_stretches(t);
    for (uint64_t i = 0; i < n && t->row_bytes > 0 && t->type_id != GGUF_WHOLE_NUMBERS; i++) {
        size_t own;
        uint64_t offset = 0;
        const void *data = gguf_tensor_stretch(t, i, &own);
        size_t shard = shard_of(s->file, t->shard, data, &offset);
        if (shard < gguf_n_shards(s->file))
            s->stretches[s->n++] = (struct stretch){shard, offset, offset + own, t};
        *n_bytes += own;
    }
}

/** Bytes of rows that follow each other as stored; 0: there are none such. */
static uint64_t row_bytes_of(const struct gguf_tensor *t)
{
    const struct gguf_view *view = t->view;
    bool regular = !view || (!view->col_step && view->row_step % t->row_bytes == 0);
    return regular && t->n_rows > 1 ? t->row_bytes : 0;
}

/** What zeros from `begin` to `end` are; stretches[from] is the first that has some of them. */
static struct gguf_zeros describe(const struct search *s, size_t from, uint64_t begin, uint64_t end)
{
    const struct stretch *first = NULL, *last = NULL;
    size_t n_parts = 0, shard = s->stretches[from].shard;
    struct gguf_zeros z = {.shard = shard, .offset = begin, .n_bytes = end - begin};
    bool at_end = false;
    for (size_t i = from; i < s->n && s->stretches[i].shard == shard; i++) {
        const struct stretch *l = &s->stretches[i];
        at_end = l->end <= end;
        if (l->begin >= end)
            break;
        bool whole = begin <= l->begin && at_end;
        if (!whole && base_min(end, l->end) - base_max(begin, l->begin) < BY_CHANCE)
            continue;
        first = first ? first : l;
        last = l;
        n_parts += l->tensor->n_rows > 1;
        z.n_whole += l->tensor->n_rows > 1 && whole;
    }
    z.first = first->tensor;
    z.last = last->tensor;
    uint64_t row = row_bytes_of(z.first), at = begin > first->begin ? begin - first->begin : 0;
    z.n_signs += row && at % row && row - at % row >= BY_CHANCE;
    row = row_bytes_of(z.last);
    z.n_signs += at_end || (row && end < last->end && (end - last->begin) % row >= BY_CHANCE);
    z.n_signs += n_parts > 1 && (z.n_whole < n_parts || n_parts >= SEVERAL);
    return z;
}

/** The first stretch that ends beyond a place. */
static size_t stretch_at(const struct search *s, size_t i, uint64_t place)
{
    while (i > 0 && s->stretches[i - 1].shard == s->stretches[i].shard &&
           s->stretches[i - 1].end > place)
        i--;
    while (s->stretches[i].end <= place)
        i++;
    return i;
}

/** Look at the bytes at `place`, in stretch i. known: bytes before it need not be looked at. */
static enum status probe(const struct search *s, size_t i, uint64_t place, uint64_t *known,
                         struct status_why *why)
{
    uint64_t n_bytes, offset;
    const struct stretch *own = &s->stretches[i];
    const uint8_t *data = gguf_shard_data(s->file, own->shard, &n_bytes, &offset);
    uint64_t n = base_min(PROBE, own->end - place);
    if (place < *known)
        return STATUS_OK;
    if (zeros_from(data + place, n) < n) {
        *known = place;
        return STATUS_OK;
    }
    uint64_t begin = place - zeros_before(data + place, place - base_max(*known, offset));
    uint64_t end = place + zeros_from(data + place, base_min(n_bytes - place, MOST));
    struct gguf_zeros zeros = describe(s, stretch_at(s, i, begin), begin, end);
    *known = end;
    return zeros.n_whole || zeros.n_bytes >= GGUF_LEAST_ZEROS ? s->found(s->user, &zeros, why)
                                                              : STATUS_OK;
}

static enum status search(const struct search *s, struct status_why *why)
{
    enum status status = STATUS_OK;
    uint64_t known = 0;
    for (size_t i = 0; i < s->n && !status; i++) {
        const struct stretch *l = &s->stretches[i];
        uint64_t n_bytes = l->end - l->begin, room = n_bytes - base_min(n_bytes, PROBE);
        uint64_t n = l->tensor->n_rows > 1 ? 1 + n_bytes / s->step : 0;
        bool last = i + 1 == s->n || s->stretches[i + 1].shard != l->shard;
        if (i > 0 && s->stretches[i - 1].shard != l->shard)
            known = 0;
        for (uint64_t k = 0; k < n && !status; k++) /* the middles of n pieces */
            status = probe(s, i, l->begin + room / n * k + room / n / 2, &known, why);
        if (!status && last)
            status = probe(s, i, l->begin + room, &known, why);
    }
    return status;
}

/** Probes are far apart: what lies around them is not wanted. */
static void read_alone(const struct gguf_file *file, bool alone)
{
    for (size_t i = 0; i < gguf_n_shards(file); i++) {
        uint64_t n_bytes, begin;
        const void *data = gguf_shard_data(file, i, &n_bytes, &begin);
        gguf_map_read_alone(data, (size_t)n_bytes, alone);
    }
}

enum status gguf_zeros_find(const struct gguf_file *file, gguf_zeros_found *found, void *user,
                            struct status_why *why)
{
    struct search s = {.file = file, .found = found, .user = user};
    uint64_t n_bytes = 0;
    size_t n = 0;
    for (size_t i = 0; i < gguf_n_tensors(file); i++)
        n += (size_t)gguf_tensor_n_stretches(gguf_tensor_at(file, i));
    if (base_array_new(s.stretches, n, "tensors", why))
        return STATUS_MEMORY;
    for (size_t i = 0; i < gguf_n_tensors(file); i++)
        list_stretches(&s, gguf_tensor_at(file, i), &n_bytes);
    qsort(s.stretches, s.n, sizeof *s.stretches, in_order);
    s.step = base_max(n_bytes / N_PROBES, LEAST_STEP);
    read_alone(file, true);
    enum status status = search(&s, why);
    read_alone(file, false);
    free(s.stretches);
    return status;
}
