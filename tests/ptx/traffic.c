#include "tests/ptx/traffic.h"

#include <stdlib.h>
#include <string.h>

#include "tests/ptx/text.h"

enum { SEEN_READ = 1, SEEN_WRITTEN = 2, BANKS = 32, BANK_BYTES = 4 };

/** An instruction's access to one kind of memory. */
struct accesses {
    enum ptx_memory_space space;
    unsigned operand, address_bytes, n_bytes;
    int64_t offset;
    bool reads, writes;
};

static uint64_t address_of(const struct ptx_warp *w, const struct ptx_ins *in,
                           const struct accesses *x, unsigned lane)
{
    const void *reg = ptx_register(w->file, in->at[x->operand]);
    if (x->address_bytes == 4)
        return (uint32_t)(((const uint32_t *)reg)[lane] + (uint32_t)x->offset);
    return ((const uint64_t *)reg)[lane] + (uint64_t)x->offset;
}

/** Add a value to a list, if it is not there; the new number of them. */
static unsigned add_once(uint64_t *list, unsigned n, uint64_t value)
{
    for (unsigned i = 0; i < n; i++) {
        if (list[i] == value)
            return n;
    }
    list[n] = value;
    return n + 1;
}

static void see(struct ptx_block *b, uint64_t sector, unsigned how, uint32_t *hint)
{
    struct ptx_allocation *a = ptx_space_find(b->space, sector * PTX_SECTOR, hint);
    if (!a)
        return; /* the access itself reports that */
    if (!a->seen)
        a->seen =
            memset(ptx_grow(NULL, a->n_bytes / PTX_SECTOR + 1), 0, a->n_bytes / PTX_SECTOR + 1);
    a->seen[(sector * PTX_SECTOR - (uint64_t)(uintptr_t)a->memory) / PTX_SECTOR] |= (uint8_t)how;
}

static void count_global(struct ptx_block *b, const struct ptx_warp *w, const struct ptx_ins *in,
                         const struct accesses *x, uint32_t mask)
{
    uint64_t sectors[2 * PTX_LANES];
    uint32_t hint = 0;
    unsigned n = 0, n_bytes = (unsigned)__builtin_popcount(mask) * x->n_bytes;
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        uint64_t at = address_of(w, in, x, (unsigned)__builtin_ctz(rest));
        n = add_once(sectors, n, at / PTX_SECTOR);
        n = add_once(sectors, n, (at + x->n_bytes - 1) / PTX_SECTOR);
    }
    for (unsigned i = 0; i < n; i++)
        see(b, sectors[i], (x->reads ? SEEN_READ : 0) | (x->writes ? SEEN_WRITTEN : 0), &hint);
    b->traffic->read_bytes += x->reads ? n_bytes : 0;
    b->traffic->written_bytes += x->writes ? n_bytes : 0;
    b->traffic->read_sectors += x->reads ? n : 0;
    b->traffic->written_sectors += x->writes ? n : 0;
}

/** A bank gives one word in a cycle, to all lanes that want it: at best this many cycles. */
static unsigned cycles_of(const struct ptx_warp *w, const struct ptx_ins *in,
                          const struct accesses *x, uint32_t mask)
{
    uint64_t words[BANKS][4 * PTX_LANES];
    unsigned n[BANKS] = {0}, most = 0;
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        uint64_t at = address_of(w, in, x, (unsigned)__builtin_ctz(rest)) / BANK_BYTES;
        for (unsigned i = 0; i < (x->n_bytes + BANK_BYTES - 1) / BANK_BYTES; i++) {
            unsigned bank = (unsigned)((at + i) % BANKS);
            n[bank] = add_once(words[bank], n[bank], at + i);
            most = n[bank] > most ? n[bank] : most;
        }
    }
    return most;
}

static void count_shared(struct ptx_block *b, const struct ptx_warp *w, const struct ptx_ins *in,
                         const struct accesses *x, uint32_t mask)
{
    b->traffic->shared_cycles += cycles_of(w, in, x, mask);
    b->traffic->shared_accesses++;
    b->traffic->shared_bytes += (unsigned)__builtin_popcount(mask) * x->n_bytes;
}

static void count(struct ptx_block *b, const struct ptx_warp *w, const struct ptx_ins *in,
                  const struct accesses *x, uint32_t mask)
{
    if (x->space == PTX_GLOBAL)
        count_global(b, w, in, x, mask);
    else if (x->space == PTX_SHARED)
        count_shared(b, w, in, x, mask);
    else if (x->space == PTX_LOCAL)
        b->traffic->local_bytes += (unsigned)__builtin_popcount(mask) * x->n_bytes;
}

void ptx_traffic_count(struct ptx_block *b, const struct ptx_warp *w, const struct ptx_ins *in,
                       uint32_t mask)
{
    const struct ptx_memory *m = &b->kernel->memory[in->memory];
    struct accesses x = {.space = m->space,
                         .address_bytes = m->address_bytes,
                         .n_bytes = (unsigned)m->elem_bytes * m->n_elems,
                         .offset = m->offset,
                         .reads = in->kind != PTX_STORE,
                         .writes = in->kind == PTX_STORE || in->kind == PTX_ATOMIC};
    if (in->kind == PTX_LOAD) {
        x.operand = m->n_elems;
    } else if (in->kind == PTX_ATOMIC) {
        x.operand = in->n_out;
    } else if (in->kind == PTX_MATRIX) {
        x = (struct accesses){PTX_SHARED, m->n_elems, 4, 16, m->offset, true, false};
        mask = m->n_elems == 4 ? PTX_ALL_LANES : ((uint32_t)1 << 8 * m->n_elems) - 1;
    } else if (in->kind == PTX_COPY) {
        x = (struct accesses){PTX_GLOBAL, 1, 8, m->elem_bytes, m->offset2, true, false};
        count(b, w, in, &x, mask);
        x = (struct accesses){PTX_SHARED, 0, 4, m->elem_bytes, m->offset, false, true};
    } else if (in->kind != PTX_STORE) {
        return;
    }
    count(b, w, in, &x, mask);
}

void ptx_traffic_end(struct ptx_traffic *t, struct ptx_space *space)
{
    for (size_t i = 0; i < space->n; i++) {
        struct ptx_allocation *a = &space->list[i];
        for (size_t s = 0; a->seen && s <= a->n_bytes / PTX_SECTOR; s++) {
            t->read_once += a->seen[s] & SEEN_READ ? 1 : 0;
            t->written_once += a->seen[s] & SEEN_WRITTEN ? 1 : 0;
        }
        free(a->seen);
        a->seen = NULL;
    }
}
