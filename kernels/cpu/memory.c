#include "kernels/cpu/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/arithmetic.h"
#include "base/system/system.h"

enum { ALIGNMENT = 64, MAP_BYTES = 1 << 20, HUGE_PAGE = 2 << 20 };

/** In front of each block. */
struct header {
    _Alignas(ALIGNMENT) void *base;
    size_t mapped_bytes; /* 0: base is malloc's */
};

static struct header *map_block(size_t n_bytes)
{
    size_t alignment = n_bytes >= 2 * (size_t)HUGE_PAGE ? HUGE_PAGE : ALIGNMENT;
    size_t mapped_bytes = n_bytes + alignment + sizeof(struct header);
    char *base =
        mmap(NULL, mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return NULL;
    uintptr_t begin = (uintptr_t)base + sizeof(struct header);
    char *memory = base + (base_round_up(begin, alignment) - (uintptr_t)base);
    /* Only a hint: fewer TLB misses. A refusal changes nothing but speed. The last, partial
     * page is left out, so that no more memory is taken than was asked for. */
    if (alignment == HUGE_PAGE)
        base_system_huge_pages(memory, n_bytes / HUGE_PAGE * HUGE_PAGE);
    struct header *header = (struct header *)(void *)memory - 1;
    *header = (struct header){.base = base, .mapped_bytes = mapped_bytes};
    return header;
}

void *kern_memory_new(size_t n_bytes)
{
    if (n_bytes > SIZE_MAX / 2)
        return NULL;
    struct header *header = NULL;
    if (n_bytes >= MAP_BYTES) {
        header = map_block(n_bytes);
    } else {
        void *base = NULL;
        if (posix_memalign(&base, ALIGNMENT, sizeof *header + n_bytes) == 0) {
            header = base;
            *header = (struct header){.base = base};
        }
    }
    return header ? header + 1 : NULL;
}

void kern_memory_free(void *memory)
{
    if (!memory)
        return;
    struct header *header = (struct header *)memory - 1;
    if (header->mapped_bytes)
        munmap(header->base, header->mapped_bytes);
    else
        free(header->base);
}
