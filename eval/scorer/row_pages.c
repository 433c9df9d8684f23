#include "eval/scorer/row_pages.h"

#include <stdint.h>
#include <unistd.h>

#include "base/arithmetic.h"
#include "base/system/system.h"
#include "gguf/map.h"

enum {
    AHEAD_BYTES = 256 << 20, /* asked of the disk before they are used */
    ROW_GROUP = 64           /* no panel of the kernels is half full */
};

size_t eval_row_pages_fit(size_t n_bytes, size_t row_bytes)
{
    return base_max(n_bytes / row_bytes / ROW_GROUP, 1) * ROW_GROUP;
}

static const char *at(const struct eval_row_pages *p, size_t row)
{
    return p->rows + row * p->row_bytes;
}

/** Let go of the pages that only the rows handed out last lie in. */
static void let_go(const struct eval_row_pages *p)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t from = base_round_up((uintptr_t)at(p, p->first_in), page);
    uintptr_t to = (uintptr_t)at(p, p->first_in + p->n_in) / page * page;
    if (p->mapped && to > from)
        base_system_drop_pages((void *)from, to - from);
}

/** Ask for what is wanted soon: as far as AHEAD_BYTES go beyond `row`, or two calls' rows. */
static void read_ahead(struct eval_row_pages *p, size_t row)
{
    size_t reach = base_max(eval_row_pages_fit(AHEAD_BYTES, p->row_bytes), 2 * p->n_in);
    size_t until = base_min(p->end, row + reach), from = base_max(p->ahead, row);
    if (until <= from)
        return;
    if (p->mapped)
        gguf_map_read_ahead(at(p, from), (until - from) * p->row_bytes);
    p->ahead = until;
}

void eval_row_pages_expect(void *pages, size_t first, size_t n_rows)
{
    struct eval_row_pages *p = pages;
    if (first != p->end)
        p->ahead = first;
    p->end = first + n_rows;
    read_ahead(p, first);
}

const char *eval_row_pages_take(void *pages, size_t first, size_t n_rows)
{
    struct eval_row_pages *p = pages;
    let_go(p);
    p->first_in = first;
    p->n_in = n_rows;
    read_ahead(p, first);
    return at(p, first);
}
