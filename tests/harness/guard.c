#include "tests/harness/guard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FILL = 0xa5 };

struct guard guard_open(size_t n_bytes, size_t slack)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t inner = (n_bytes + slack + page - 1) / page * page;
    struct guard g = {.n_bytes = n_bytes, .slack = slack, .pages_bytes = inner + 2 * page};
    g.pages = mmap(NULL, g.pages_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (g.pages == MAP_FAILED ||
        (inner != 0 && mprotect(g.pages + page, inner, PROT_READ | PROT_WRITE) != 0)) {
        perror("guard_open");
        exit(EXIT_FAILURE);
    }
    memset(g.pages + page, FILL, inner);
    g.data = g.pages + page + inner - slack - n_bytes;
    return g;
}

static bool is_filled(const uint8_t *from, const uint8_t *end)
{
    while (from < end && *from == FILL)
        from++;
    return from == end;
}

bool guard_intact(const struct guard *g)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return is_filled(g->pages + page, g->data) &&
           is_filled(g->data + g->n_bytes, g->pages + g->pages_bytes - page);
}

void guard_close(struct guard *g)
{
    munmap(g->pages, g->pages_bytes);
    *g = (struct guard){0};
}
