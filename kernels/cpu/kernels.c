#include "kernels/cpu/kernels.h"

#include <assert.h>

/** Replace the kernels of `out` that `over` has a version of. */
static void overlay(struct kern_kernels *out, const struct kern_kernels *over)
{
    for (size_t type = 0; type < GGUF_TYPE_LIMIT; type++) {
        if (over->decode[type])
            out->decode[type] = over->decode[type];
        if (over->straight8[type])
            out->straight8[type] = over->straight8[type];
        if (over->straight16[type])
            out->straight16[type] = over->straight16[type];
    }
#define OVERLAY(name) out->name = over->name ? over->name : out->name;
    KERN_PRODUCT_KERNELS(OVERLAY)
    out->bytes_most = over->int8_tile ? over->bytes_most : out->bytes_most;
}

enum kern_isa kern_kernels_build(struct kern_kernels *out, enum kern_isa cap)
{
    enum kern_isa top = kern_isa_detect();
    if (cap < top)
        top = cap;
    assert(top < KERN_ISA_COUNT);
    *out = kern_kernels_scalar;
    out->ops = *kern_sets[top].ops; /* whole: every ISA has all of it */
    const struct kern_quant *quant;
    for (size_t i = 0; (quant = kern_quant_at(i)); i++)
        out->decode[quant->type] = quant->decode;
    for (int isa = KERN_ISA_SCALAR + 1; isa <= (int)top; isa++) {
        overlay(out, kern_sets[isa].own);
        if (kern_sets[isa].vnni && kern_isa_has_vnni((enum kern_isa)isa))
            overlay(out, kern_sets[isa].vnni);
    }
    if (kern_sets[top].pairs && kern_isa_has_vnni(top) && kern_isa_adds_more())
        overlay(out, kern_sets[top].pairs);
    /* Rows of bundles become blocks of another type; its decoders do for most. */
    for (size_t i = 0; (quant = kern_quant_at(i)); i++)
        if (quant->decode == kern_quant_find(quant->plain)->decode)
            out->decode[quant->type] = out->decode[quant->plain];
    return top;
}
