#include "kernels/cpu/table.h"

#include <assert.h>

static const struct kern_table *const tables[KERN_ISA_COUNT] = {
    [KERN_ISA_SCALAR] = &kern_table_scalar,
    [KERN_ISA_AVX2] = &kern_table_avx2,
    [KERN_ISA_AVX512] = &kern_table_avx512,
};

const struct kern_table *kern_table_of(enum kern_isa isa)
{
    assert((unsigned)isa < KERN_ISA_COUNT);
    return tables[isa];
}

/** Replace the rows of `out` that `over` has a version of. */
static void overlay(struct kern_table *out, const struct kern_table *over)
{
    for (size_t type = 0; type < GGUF_TYPE_LIMIT; type++) {
        if (over->decode[type])
            out->decode[type] = over->decode[type];
    }
    if (over->fma_tile)
        out->fma_tile = over->fma_tile;
    if (over->lanes_pack)
        out->lanes_pack = over->lanes_pack;
    if (over->lanes_unpack)
        out->lanes_unpack = over->lanes_unpack;
    if (over->softmax_block)
        out->softmax_block = over->softmax_block;
    if (over->score_update)
        out->score_update = over->score_update;
    if (over->rank_update)
        out->rank_update = over->rank_update;
}

enum kern_isa kern_table_build(struct kern_table *out, enum kern_isa cap)
{
    enum kern_isa top = kern_isa_detect();
    if (cap < top)
        top = cap;
    *out = kern_table_scalar;
    for (int isa = KERN_ISA_SCALAR + 1; isa <= (int)top; isa++)
        overlay(out, tables[isa]);
    return top;
}
